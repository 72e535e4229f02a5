//! No command writes anything but its output, and none that reads starts a process: each runs in a directory whose every file
//! is compared afterwards, under a filter that ends a process when it starts another one.

mod made;

use hotswap_bundle::Compression;
use made::{bitcode, bundle};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Commands, and the one file that each may write.
const COMMANDS: &[(&str, Option<&str>)] = &[
    ("list in/a.hipfb", None),
    ("list --kernels --format json in/a.hipfb in/b.o in/junk", None),
    ("inspect in/a.hipfb", None),
    ("verify in/a.hipfb", None),
    ("disasm in/a.hipfb", None),
    ("symbols in/a.hipfb", None),
    ("size in/a.hipfb", None),
    ("diff in/a.hipfb in/b.hipfb", None),
    ("lint in/a.hipfb", None),
    ("explain HS0203", None),
    ("targets", None),
    ("families", None),
    ("compat gfx1030 gfx1031", None),
    ("retarget in/a.hipfb --to gfx902 --dry-run", None),
    ("retarget in/junk --to gfx902 -o out/z", None),
    ("extract in/a.hipfb --entry 1 -o out/z", Some("out/z")),
    ("prune in/a.hipfb --keep gfx900 -o out/z", Some("out/z")),
    ("compress in/a.hipfb -o out/z", Some("out/z")),
    ("decompress in/b.hipfb -o out/z", Some("out/z")),
    ("remove in/a.hipfb gfx900 -o out/z", Some("out/z")),
];

/// Every file and directory below it, with its content.
fn state(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(state(&path));
        }
        all.insert(path.clone(), fs::read(&path).unwrap_or_default());
    }
    all
}

fn directory() -> TempDir {
    let directory = TempDir::new().unwrap();
    for name in ["in", "out", "home", "tmp", "cache"] {
        fs::create_dir(directory.path().join(name)).unwrap();
    }
    let write = |name: &str, bytes: &[u8]| fs::write(directory.path().join("in").join(name), bytes).unwrap();
    write("a.hipfb", &bundle(&["gfx900", "gfx902"], None, bitcode));
    write("b.hipfb", &bundle(&["gfx900", "gfx902"], Some(Compression::default()), bitcode));
    write("b.o", &made::section(".hip_fatbin", &bundle(&["gfx900"], None, bitcode), 4096, object::BinaryFormat::Elf));
    write("junk", b"#!/bin/sh\ntouch out/owned\n");
    directory
}

/// Ends a process that makes another one; threads are allowed (`clone3` fails, and `clone` serves in its place).
fn without_children() -> BpfProgram {
    const CLONE_THREAD: u64 = 0x0001_0000;
    const FORK: i64 = 57;
    const VFORK: i64 = 58;
    const CLONE: i64 = 56;
    let child = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(CLONE_THREAD), 0).unwrap();
    let rules = [(FORK, Vec::new()), (VFORK, Vec::new()), (CLONE, vec![SeccompRule::new(vec![child]).unwrap()])];
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let filter =
        SeccompFilter::new(rules.into_iter().collect(), SeccompAction::Allow, SeccompAction::KillProcess, machine);
    filter.unwrap().try_into().unwrap()
}

fn without_clone3() -> BpfProgram {
    const CLONE3: i64 = 435;
    const ENOSYS: u32 = 38;
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let rules = [(CLONE3, Vec::new())].into_iter().collect();
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(ENOSYS), machine).unwrap().try_into().unwrap()
}

#[allow(unsafe_code, reason = "the code between fork and exec can only be given by an unsafe function")]
fn run(program: &str, directory: &Path, words: &str) -> Output {
    let filters = [without_clone3(), without_children()];
    let mut command = Command::new(program);
    command.args(words.split(' ')).current_dir(directory).env_clear().env("PATH", "/usr/bin:/bin");
    for (name, value) in [("HOME", "home"), ("TMPDIR", "tmp"), ("XDG_CACHE_HOME", "cache")] {
        command.env(name, directory.join(value));
    }
    // SAFETY: between fork and exec only the system call `seccomp` is made, on data that exists.
    unsafe {
        command.pre_exec(move || {
            filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter).map_err(std::io::Error::other))
        });
    }
    command.output().unwrap()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn nothing_is_written_but_the_output_and_nothing_is_started() {
    for (words, output) in COMMANDS {
        let directory = directory();
        let before = state(directory.path());
        let ran = run(env!("CARGO_BIN_EXE_hotswap"), directory.path(), words);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let code = ran.status.code();
        assert!(code.is_some_and(|code| code != 70 && code != 101), "{words}: {:?} {said}", ran.status);
        let mut after = state(directory.path());
        if let Some(output) = output {
            assert_eq!(code, Some(0), "{words}: {said}");
            assert!(after.remove(&directory.path().join(output)).is_some_and(|bytes| !bytes.is_empty()), "{words}");
        }
        let names = |state: &BTreeMap<PathBuf, Vec<u8>>| state.keys().cloned().collect::<Vec<_>>();
        assert!(after == before, "{words}: {:?} became {:?}", names(&before), names(&after));
    }
}

/// The filter and the comparison see what they are for.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_shell_that_starts_and_writes_is_seen() {
    let directory = directory();
    let before = state(directory.path());
    let status = run("/bin/sh", directory.path(), "in/junk").status;
    assert!(std::os::unix::process::ExitStatusExt::signal(&status).is_some(), "{status}");
    assert_eq!(state(directory.path()), before);
    fs::write(directory.path().join("cache/x"), "").unwrap();
    assert_ne!(state(directory.path()), before);
}
