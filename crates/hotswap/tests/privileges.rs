//! Two users: an update in place by another user does not pass on set-ID rights, and new files heed the umask.
//! umask.
//!
//! Only root can act as two users; otherwise the tests report that they are skipped, and `cargo xtask test` counts
//! them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const NOBODY: u32 = 65534;

/// A bundle without code: enough to be compressed.
fn bundle() -> Vec<u8> {
    let entry = "host-x86_64-unknown-linux-gnu--";
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    let start = 24 + 8 + 24 + entry.len() as u64;
    for number in [1, start, 4096, entry.len() as u64] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(entry.as_bytes());
    bytes.resize(start as usize + 4096, b'a');
    bytes
}

/// A directory with a bundle of that mode and user, and the program where every user may run it.
fn place(owner: u32, mode: u32) -> Option<TempDir> {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    // By a process of its own: see `copy_program` in scarce.rs.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_hotswap")).arg(dir.path().join("hotswap")).status();
    assert!(copied.unwrap().success());
    let file = dir.path().join("s");
    fs::write(&file, bundle()).unwrap();
    if chown(&file, Some(owner), Some(owner)).is_err() {
        hotswap_userland::skip("privileges", "only root can be two users");
        return None;
    }
    fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    Some(dir)
}

/// User, group and mode of the file after `compress s -o OUTPUT` by that user.
fn compressed(dir: &Path, user: u32, umask: &str, output: &str) -> (u32, u32, u32) {
    let mut command = Command::new("/bin/sh");
    let line = format!("umask {umask} && exec ./hotswap compress s -o {output}");
    let done = command.args(["-c", &line]).current_dir(dir).uid(user).gid(user).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = fs::read(dir.join(output)).unwrap();
    assert!(bytes.starts_with(b"CCOB"), "{:?}", &bytes[..8]);
    let meta = fs::metadata(dir.join(output)).unwrap();
    (meta.uid(), meta.gid(), meta.mode() & 0o7777)
}

#[test]
fn root_gives_a_changed_file_back_to_its_owner() {
    let Some(dir) = place(NOBODY, 0o6755) else { return };
    assert_eq!(compressed(dir.path(), 0, "022", "s"), (NOBODY, NOBODY, 0o6755));
}

#[test]
fn a_user_who_changes_the_file_of_another_gets_none_of_its_rights() {
    let Some(dir) = place(0, 0o6755) else { return };
    assert_eq!(compressed(dir.path(), NOBODY, "022", "s"), (NOBODY, NOBODY, 0o755));
}

#[test]
fn new_files_heed_the_umask() {
    let Some(dir) = place(0, 0o755) else { return };
    assert_eq!(compressed(dir.path(), 0, "077", "new"), (0, 0, 0o700));
    assert_eq!(compressed(dir.path(), 0, "022", "other"), (0, 0, 0o755));
}
