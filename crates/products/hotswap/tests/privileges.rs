//! Two users: an update in place by another user does not pass on set-ID rights, new files heed the umask, and links that another
//! user planted lead nowhere.
//!
//! Only root can act as two users; otherwise the tests report that they are skipped, and `cargo xtask test` counts
//! them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
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
    // TMPDIR may lie where only its user may enter.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    // By a process of its own: see `copy_program` in scarce.rs.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_hotswap")).arg(dir.path().join("hotswap")).status();
    assert!(copied.unwrap().success());
    let file = dir.path().join("s");
    fs::write(&file, bundle()).unwrap();
    if !hotswap_userland::can_be_two_users() || chown(&file, Some(owner), Some(owner)).is_err() {
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
fn a_user_who_cannot_keep_the_owner_of_a_file_does_not_replace_it() {
    let Some(dir) = place(0, 0o6755) else { return };
    let mut command = Command::new("./hotswap");
    let done = command.args(["compress", "s", "-o", "s"]).current_dir(dir.path()).uid(NOBODY).gid(NOBODY).output();
    let done = done.unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(14) && said.contains("its owner (0:0) cannot be kept"), "{said}");
    let meta = fs::metadata(dir.path().join("s")).unwrap();
    assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o7777), (0, 0, 0o6755));
    assert_eq!(fs::read(dir.path().join("s")).unwrap(), bundle());
    // A new file is the user's own.
    assert_eq!(compressed(dir.path(), NOBODY, "022", "other"), (NOBODY, NOBODY, 0o755));
}

#[test]
fn new_files_heed_the_umask() {
    let Some(dir) = place(0, 0o755) else { return };
    assert_eq!(compressed(dir.path(), 0, "077", "new"), (0, 0, 0o700));
    assert_eq!(compressed(dir.path(), 0, "022", "other"), (0, 0, 0o755));
}

/// A directory as `/tmp` is, with a file of root's, and the link `out` of that user to the file.
fn planted(owner: u32) -> Option<TempDir> {
    let dir = place(0, 0o644)?;
    fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
    fs::write(dir.path().join("victim"), "old").unwrap();
    symlink("victim", dir.path().join("out")).unwrap();
    lchown(dir.path().join("out"), Some(owner), Some(owner)).unwrap();
    Some(dir)
}

#[test]
fn a_link_that_another_user_planted_is_not_followed() {
    let Some(dir) = planted(NOBODY) else { return };
    let mut command = Command::new(dir.path().join("hotswap"));
    let done = command.args(["compress", "s", "-o", "out"]).current_dir(dir.path()).output().unwrap();
    let message = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(14), "{message}");
    assert!(message.contains("out: ") && message.contains("a link of another user"), "{message}");
    assert_eq!(fs::read(dir.path().join("victim")).unwrap(), b"old");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4, "nothing is left behind");
}

#[test]
fn a_link_of_the_user_is_followed_anywhere() {
    let Some(dir) = planted(0) else { return };
    compressed(dir.path(), 0, "022", "out");
    assert!(dir.path().join("out").is_symlink());
    assert!(fs::read(dir.path().join("victim")).unwrap().starts_with(b"CCOB"));
}

/// The exit code and the messages of `hotswap profile …` by a user without rights.
fn profile_command(dir: &Path, words: &str) -> (Option<i32>, String) {
    let mut command = Command::new("./hotswap");
    let words = ["profile"].into_iter().chain(words.split(' '));
    let done = command.args(words).current_dir(dir).uid(NOBODY).gid(NOBODY).output().unwrap();
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn profiles_and_directories_without_rights_are_named() {
    let Some(dir) = place(0, 0o644) else { return };
    let at = |name: &str| dir.path().join(name);
    for name in ["several", "locked"] {
        fs::create_dir(at(name)).unwrap();
    }
    let files = ["own.profraw", "several/b.profraw"];
    for name in files {
        fs::write(at(name), [0; 200]).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(0o0)).unwrap();
    }
    fs::set_permissions(at("locked"), Permissions::from_mode(0o0)).unwrap();
    for (input, named) in [("own.profraw", files[0]), ("several", files[1]), ("locked", "locked")] {
        for words in ["show INPUT", "merge INPUT -o out", "report hotswap --profile INPUT"] {
            let words = words.replace("INPUT", input);
            let (code, said) = profile_command(dir.path(), &words);
            let is_named = said.contains(&format!("[HS0501] {named}: ")) && said.contains("Permission denied");
            assert!(code == Some(14) && is_named, "{words}: {code:?} {said}");
        }
    }
    // With the right to read them, their content is at fault.
    for name in files {
        fs::set_permissions(at(name), Permissions::from_mode(0o644)).unwrap();
        let (code, said) = profile_command(dir.path(), &format!("show {name}"));
        assert!(code == Some(12) && said.contains(name) && !said.contains("HS0501"), "{name}: {code:?} {said}");
    }
    assert!(!at("out").exists());
}
