//! Commands on a system with fewer resources: no thread, no file without a name, no `clone3`, no room for their output,
//! a working directory whose path is too long; inputs that shrink, and runs that are killed.

mod made;

use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::{bitcode, bundle};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

fn directory() -> TempDir {
    directory_of(bitcode)
}

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

/// By a process of its own: a file that this one has open for writing is busy in what other threads start meanwhile.
fn copy_program(directory: &Path) {
    let status = Command::new("cp").arg(env!("CARGO_BIN_EXE_hotswap")).arg(directory.join("hotswap")).status();
    assert!(status.unwrap().success());
}

fn directory_of(code: fn(&str) -> Vec<u8>) -> TempDir {
    let directory = TempDir::new().unwrap();
    // Many bundles in a row, so that threads are wanted.
    let one = bundle(&["gfx900", "gfx902"], None, code);
    let all: Vec<u8> =
        (0..8).flat_map(|_| [one.clone(), vec![0; one.len().next_multiple_of(4096) - one.len()]].concat()).collect();
    fs::write(directory.path().join("x"), all).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    copy_program(directory.path());
    directory
}

/// The limit does not apply to root, so root switches to another user for it; a user namespace may have no other.
fn without_threads(directory: &TempDir, words: &str) -> Output {
    let other = "if [ $(id -u) = 0 ] && setpriv --reuid 61234 true 2> /dev/null; then set -- setpriv --reuid 61234 --regid 61234 --clear-groups \"$@\"; fi";
    let script = format!("{other}; ulimit -u 1; exec \"$@\" ./hotswap {words}");
    Command::new("bash").args(["-c", &script, "x"]).current_dir(directory.path()).output().unwrap()
}

#[test]
fn without_threads_commands_work_alone() {
    for (words, says) in [
        ("prune x --keep gfx900 -o z --jobs 8", "removed"),
        ("compress x -o z --jobs 8", "compressed"),
        ("retarget x --to gfx909 --policy keep --allow-unchanged -o z --jobs 8", ""),
        ("lint y", "no findings"),
        ("rewrite y --to gfx1250-strict -o z", "right as it is"),
    ] {
        let directory = directory();
        fs::write(directory.path().join("y"), object("gfx1250")).unwrap();
        let output = without_threads(&directory, words);
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!text.contains("panic") && output.status.code() != Some(101), "{words}: {text}");
        assert!(output.status.code() != Some(70) && text.contains(says), "{words}: {:?} {text}", output.status);
    }
}

#[test]
fn a_full_standard_output_does_not_say_that_the_file_is_untouched() {
    let directory = directory();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new("./hotswap");
    command
        .current_dir(directory.path())
        .args(["prune", "x", "--keep", "gfx900", "-o", "x"])
        .stdout(full)
        .stderr(Stdio::piped());
    let before = fs::read(directory.path().join("x")).unwrap();
    let output = command.output().unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(14) && line.contains("HS0503") && !line.contains("untouched"), "{line}");
    assert_ne!(fs::read(directory.path().join("x")).unwrap(), before);
}

const CLONE3: i64 = 435;
const OPENAT: i64 = if cfg!(target_arch = "aarch64") { 56 } else { 257 };
const O_TMPFILE: u64 = 0o20_000_000;
const EPERM: u32 = 1;
const EOPNOTSUPP: u32 = 95;

/// So large, and so hard to compress, that the new bundle is kept in a file.
fn large(text: &str) -> Vec<u8> {
    let mut state = u64::from(text.as_bytes()[5]) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let noise = std::iter::repeat_with(&mut next).take(100 << 10).collect();
    [bitcode(text), noise].concat()
}

/// A filter that fails that call with that error; of `openat` only the call for a file without a name.
fn refusing(call: i64, errno: u32) -> BpfProgram {
    let flags = |bits| SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits).unwrap();
    let rules = if call == OPENAT { vec![SeccompRule::new(vec![flags(O_TMPFILE)]).unwrap()] } else { Vec::new() };
    let all = [(call, rules)].into_iter().collect();
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(all, SeccompAction::Allow, SeccompAction::Errno(errno), machine).unwrap();
    filter.try_into().unwrap()
}

#[allow(unsafe_code, reason = "what runs between fork and exec can only be given by an unsafe function")]
fn filtered(directory: &TempDir, words: &str, filter: Option<BpfProgram>) -> Output {
    let mut command = Command::new("./hotswap");
    command.current_dir(directory.path()).args(words.split(' '));
    if let Some(filter) = filter {
        // SAFETY: two system calls; the filter was made before, and no memory is taken where they succeed.
        unsafe { command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(std::io::Error::other)) };
    }
    command.output().unwrap()
}

/// File systems without `O_TMPFILE` (FUSE, NFS, 9P), and containers whose filter is older than `clone3`.
#[test]
fn without_calls_of_new_systems_the_same_is_written() {
    for words in [
        "prune x --keep gfx900 -o z --jobs 8",
        "compress x -o z --jobs 8",
        "retarget x --to gfx909 --policy keep --allow-unchanged -o z --jobs 8",
    ] {
        let directory = directory_of(large);
        let plain = filtered(&directory, words, None);
        assert!(plain.status.success(), "{words}: {}", String::from_utf8_lossy(&plain.stderr));
        let plain = (Some(0), fs::read(directory.path().join("z")).ok());
        for (call, errno) in [(OPENAT, EOPNOTSUPP), (CLONE3, EPERM)] {
            let _ = fs::remove_file(directory.path().join("z"));
            let output = filtered(&directory, words, Some(refusing(call, errno)));
            let line = String::from_utf8_lossy(&output.stderr).into_owned();
            let found = (output.status.code(), fs::read(directory.path().join("z")).ok());
            assert!(found == plain, "{words} without {call}: {:?} {line}", output.status);
            let mut left: Vec<_> =
                fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
            left.sort();
            assert!(left.iter().all(|name| ["hotswap", "x", "z"].iter().any(|known| name == known)), "{left:?}");
        }
    }
}

#[test]
fn the_exit_code_of_an_error_that_cannot_be_said_is_its_own() {
    let directory = directory();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new("./hotswap");
    command.current_dir(directory.path()).args(["list", "absent"]).stderr(full);
    assert_eq!(command.status().unwrap().code(), Some(14));
}

/// A directory in directories, so deep that its path from the root is longer than the system takes.
fn deep(start: &Path) -> File {
    let mut directory = File::open(start).unwrap();
    for _ in 0..30 {
        let next = inside(&directory).join("d".repeat(200));
        fs::create_dir(&next).unwrap();
        directory = File::open(next).unwrap();
    }
    directory
}

fn inside(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

fn run_in(working: &Path, program: &Path, words: &str) -> Output {
    Command::new(program).current_dir(working).args(words.split(' ')).output().unwrap()
}

#[test]
fn relative_names_serve_where_the_path_from_the_root_is_too_long() {
    let plain = directory_of(large);
    let deep_parent = TempDir::new().unwrap();
    let deep = deep(deep_parent.path());
    let program = plain.path().join("hotswap");
    for words in [
        "list x",
        "verify x",
        "inspect x",
        "extract x --target gfx900 -o z",
        "prune x --keep gfx900 -o z",
        "prune ./x --keep gfx900 -o x",
        "compress x -o z",
        "compress x -o ./x",
        "compress link -o link",
        "retarget x --to gfx909 --policy keep --allow-unchanged -o z",
    ] {
        let results = [plain.path().to_owned(), inside(&deep)].map(|working| {
            let original = bundle(&["gfx900", "gfx902"], None, large);
            fs::write(working.join("x"), original).unwrap();
            let _ = (fs::remove_file(working.join("z")), fs::remove_file(working.join("link")));
            std::os::unix::fs::symlink("./x", working.join("link")).unwrap();
            let output = run_in(&working, &program, words);
            let written = ["x", "z"].map(|name| fs::read(working.join(name)).ok());
            let is_link = fs::symlink_metadata(working.join("link")).unwrap().is_symlink();
            let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
            (output.status.code(), said, is_link, written)
        });
        assert_eq!((results[0].0, results[0].2), (Some(0), true), "{words}: {}", results[0].1);
        assert_eq!((results[1].0, &results[1].1), (Some(0), &results[0].1), "{words}");
        assert!(results[0] == results[1], "{words}: other bytes");
    }
    // A name that the system itself rejects is one of our errors.
    for name in ["n".repeat(300), "./".repeat(2500) + "x"] {
        let output = run_in(plain.path(), &program, &format!("list {name}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(14) && said.contains("HS0501"), "{said}");
    }
}

/// A bundle of one entry that takes a while to be looked at.
fn huge(path: &Path) {
    const SIZE: u64 = 2 << 30;
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    let id = made::id("gfx900");
    for number in [1, 4096, SIZE, id.len() as u64] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(id.bytes());
    fs::write(path, bytes).unwrap();
    File::options().write(true).open(path).unwrap().set_len(4096 + SIZE).unwrap();
}

#[test]
fn an_input_that_shrinks_while_it_is_read_is_an_error() {
    let directory = directory();
    let input = directory.path().join("x");
    huge(&input);
    let mut command = Command::new("./hotswap");
    command.current_dir(directory.path()).args(["compress", "x", "-o", "z", "--jobs", "1"]).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let maps = format!("/proc/{}/maps", child.id());
    let is_mapped = || fs::read_to_string(&maps).unwrap_or_default().lines().any(|line| line.ends_with("/x"));
    for _ in 0..10_000 {
        if is_mapped() {
            break;
        }
        sleep(Duration::from_millis(1));
    }
    // Some of it has been read by now, but not most of it.
    sleep(Duration::from_millis(20));
    File::options().write(true).open(&input).unwrap().set_len(0).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(14), "{:?} {said}", output.status);
    assert!(said.starts_with("hotswap: error: [HS0501] ") && said.lines().count() == 1, "{said}");
    let mut left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["hotswap", "x"]);
}

/// An `llvm-profdata` that works until it is killed, or at once.
fn tool(directory: &Path, script: &str) {
    let script = format!("#!/bin/sh\n[ \"$1\" = merge ] || exec echo LLVM version 22.0.0\n{script}\n");
    fs::write(directory.join("new"), script).unwrap();
    fs::set_permissions(directory.join("new"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(directory.join("new"), directory.join("llvm-profdata")).unwrap();
}

#[test]
fn what_a_killed_merge_left_is_gone_after_the_next() {
    let directory = TempDir::new().unwrap();
    let tools = TempDir::new().unwrap();
    // LLVM's raw magic number with version 10, and no records.
    let mut profile = vec![0x81, b'r', b'f', b'o', b'r', b'p', b'l', 0xff];
    profile.extend(10_u64.to_le_bytes());
    profile.resize(128, 0);
    fs::write(directory.path().join("x.profraw"), profile).unwrap();
    let merge = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        command.args(["profile", "merge", "x.profraw", "-o", "x.profdata"]).current_dir(directory.path());
        command.env("PATH", format!("{}:/usr/bin:/bin", tools.path().display())).env("TOOLS", tools.path());
        command
    };
    tool(tools.path(), ": >\"$TOOLS/started\"; exec sleep 60");
    let mut killed = merge().spawn().unwrap();
    let started = || tools.path().join("started").exists();
    assert!(
        (0..2000).any(|_| started() || {
            sleep(Duration::from_millis(5));
            false
        }),
        "the tool does not run"
    );
    killed.kill().unwrap();
    killed.wait().unwrap();
    let names = || {
        let mut names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names().len(), 2, "the directory of the merge: {:?}", names());
    tool(tools.path(), "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && : >\"$2\"; shift; done");
    let output = merge().output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(names(), ["x.profdata", "x.profraw"]);
}
