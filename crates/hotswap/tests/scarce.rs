//! Commands to which the system gives less: no thread, no file without a name, no `clone3`, no room for their output.

mod made;

use made::{bitcode, bundle};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn folder() -> TempDir {
    folder_of(bitcode)
}

fn folder_of(code: fn(&str) -> Vec<u8>) -> TempDir {
    let folder = TempDir::new().unwrap();
    // Many bundles in a row, so that threads are wanted.
    let one = bundle(&["gfx900", "gfx902"], None, code);
    let all: Vec<u8> =
        (0..8).flat_map(|_| [one.clone(), vec![0; one.len().next_multiple_of(4096) - one.len()]].concat()).collect();
    fs::write(folder.path().join("x"), all).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_hotswap"), folder.path().join("hotswap")).unwrap();
    folder
}

/// The limit does not hold for root, who becomes another user for it.
fn without_threads(folder: &TempDir, words: &str) -> Output {
    let other = "if [ $(id -u) = 0 ]; then set -- setpriv --reuid 61234 --regid 61234 --clear-groups \"$@\"; fi";
    let script = format!("{other}; ulimit -u 1; exec \"$@\" ./hotswap {words}");
    Command::new("bash").args(["-c", &script, "x"]).current_dir(folder.path()).output().unwrap()
}

#[test]
fn without_threads_commands_work_alone() {
    for (words, says) in [
        ("prune x --keep gfx900 -o z --jobs 8", "removed"),
        ("compress x -o z --jobs 8", "compressed"),
        ("retarget x --to gfx909 --policy keep -o z --jobs 8", ""),
    ] {
        let folder = folder();
        let output = without_threads(&folder, words);
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!text.contains("panic") && output.status.code() != Some(101), "{words}: {text}");
        assert!(output.status.code() != Some(70) && text.contains(says), "{words}: {:?} {text}", output.status);
    }
}

#[test]
fn a_full_standard_output_does_not_say_that_the_file_is_untouched() {
    let folder = folder();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new("./hotswap");
    command
        .current_dir(folder.path())
        .args(["prune", "x", "--keep", "gfx900", "-o", "x"])
        .stdout(full)
        .stderr(Stdio::piped());
    let before = fs::read(folder.path().join("x")).unwrap();
    let output = command.output().unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(14) && line.contains("HS0503") && !line.contains("untouched"), "{line}");
    assert_ne!(fs::read(folder.path().join("x")).unwrap(), before);
}

const CLONE3: i64 = 435;
const OPENAT: i64 = if cfg!(target_arch = "aarch64") { 56 } else { 257 };
const O_TMPFILE: u64 = 0o20_000_000;
const EPERM: u32 = 1;
const EOPNOTSUPP: u32 = 95;

/// So large, and so hard to compress, that the new bundle waits in a file.
fn large(text: &str) -> Vec<u8> {
    let mut state = u64::from(text.as_bytes()[5]) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let noise = std::iter::repeat_with(&mut next).take(100 << 10).collect();
    [bitcode(text), noise].concat()
}

/// That call fails with that error; of `openat` only the one for a file without a name.
fn refusing(call: i64, errno: u32) -> BpfProgram {
    let flags = |bits| SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits).unwrap();
    let rules = if call == OPENAT { vec![SeccompRule::new(vec![flags(O_TMPFILE)]).unwrap()] } else { Vec::new() };
    let all = [(call, rules)].into_iter().collect();
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(all, SeccompAction::Allow, SeccompAction::Errno(errno), machine).unwrap();
    filter.try_into().unwrap()
}

#[allow(unsafe_code, reason = "what runs between fork and exec can only be given by an unsafe function")]
fn filtered(folder: &TempDir, words: &str, filter: Option<BpfProgram>) -> Output {
    let mut command = Command::new("./hotswap");
    command.current_dir(folder.path()).args(words.split(' '));
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
        "retarget x --to gfx909 --policy keep -o z --jobs 8",
    ] {
        let folder = folder_of(large);
        let plain = filtered(&folder, words, None);
        assert!(plain.status.success(), "{words}: {}", String::from_utf8_lossy(&plain.stderr));
        let plain = (Some(0), fs::read(folder.path().join("z")).ok());
        for (call, errno) in [(OPENAT, EOPNOTSUPP), (CLONE3, EPERM)] {
            let _ = fs::remove_file(folder.path().join("z"));
            let output = filtered(&folder, words, Some(refusing(call, errno)));
            let line = String::from_utf8_lossy(&output.stderr).into_owned();
            let found = (output.status.code(), fs::read(folder.path().join("z")).ok());
            assert!(found == plain, "{words} without {call}: {:?} {line}", output.status);
            let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
            left.sort();
            assert!(left.iter().all(|name| ["hotswap", "x", "z"].iter().any(|known| name == known)), "{left:?}");
        }
    }
}
