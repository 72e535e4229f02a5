//! Commands in a root directory without `/proc`: they work, or say that it is missing, and nothing else that is untrue.
//!
//! Only root can hide `/proc`; otherwise the test reports that it is skipped.

mod made;

use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use std::fs;
use std::process::{Command, Output};
use tempfile::TempDir;

const TEST: &str = "commands_without_proc_say_that_it_is_missing";

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

/// The command line in a namespace whose `/proc` is empty.
fn run_without_proc(directory: &TempDir, line: &str) -> Output {
    let script = format!("mount -t tmpfs none /proc && ! test -e /proc/self && {line}");
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(directory.path()).output().unwrap()
}

#[test]
fn commands_without_proc_say_that_it_is_missing() {
    let directory = TempDir::new().unwrap();
    if !run_without_proc(&directory, "true").status.success() {
        return hotswap_userland::skip(TEST, "/proc cannot be hidden here");
    }
    fs::create_dir(directory.path().join("d")).unwrap();
    let bundle = made::bundle(&["gfx1030"], None, object);
    fs::write(directory.path().join("x"), &bundle).unwrap();
    fs::write(directory.path().join("d/libx.so"), hotswap_samples::host_files::library(&[&bundle])).unwrap();
    let packed = Command::new("tar").args(["cf", "d.tar", "d"]).current_dir(directory.path()).status();
    assert!(packed.unwrap().success());
    let hotswap = made::installed().display();
    for words in
        ["list x", "list d.tar", "inspect x", "compress x -o y", "decompress y -o z", "compress x -o x --in-place"]
    {
        let done = run_without_proc(&directory, &format!("{hotswap} {words}"));
        assert!(done.status.success() && done.stderr.is_empty(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    }
    for words in [
        "run --gpu gfx1030 -- true",
        "exec -- clang++ -c x.hip",
        "serve gfx1031 --root d --dest out",
        "doctor",
        "compress d.tar -o e.tar",
    ] {
        let done = run_without_proc(&directory, &format!("{hotswap} {words}"));
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(10) && said.contains("[HS0110]"), "{words}: {:?} {said}", done.status);
        assert!(!said.contains("install HotSwap again") && said.lines().count() == 1, "{words}: {said}");
    }
    assert!(!directory.path().join("e.tar").exists() && !directory.path().join("out").exists());
}
