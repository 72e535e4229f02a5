//! Commands to which the system gives less: no thread, no room for their output.

mod made;

use made::{bitcode, bundle};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    // Many bundles in a row, so that threads are wanted.
    let one = bundle(&["gfx900", "gfx902"], None, bitcode);
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
