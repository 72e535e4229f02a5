//! Directories with the directories above them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Makes a directory and those above it that do not exist.
///
/// Unlike [`fs::create_dir_all`], which answers "File exists" where a look at an existing directory fails, the error is
/// that of the call that failed.
///
/// # Errors
/// The first failure; [`ErrorKind::NotADirectory`] for a file in the place of a directory.
pub fn create_directories(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    match check_directory(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        checked => return checked,
    }
    path.parent().map_or(Ok(()), create_directories)?;
    match fs::create_dir(path) {
        // Another thread or program was sooner; a link that leads nowhere is not a directory.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => check_directory(path),
        made => made,
    }
}

fn check_directory(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() { Ok(()) } else { Err(ErrorKind::NotADirectory.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn directories_are_made_and_the_reason_is_that_of_the_failure() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        create_directories(&at("a/b/c")).unwrap();
        create_directories(&at("a/b/c")).unwrap();
        assert!(at("a/b/c").is_dir());
        fs::write(at("file"), "").unwrap();
        symlink("nowhere", at("link")).unwrap();
        symlink("a", at("to-a")).unwrap();
        create_directories(&at("to-a/d")).unwrap();
        for (name, kind) in [
            ("file", ErrorKind::NotADirectory),
            ("file/x", ErrorKind::NotADirectory),
            ("link", ErrorKind::NotFound),
            ("link/x", ErrorKind::NotFound),
        ] {
            assert_eq!(create_directories(&at(name)).unwrap_err().kind(), kind, "{name}");
        }
    }
}
