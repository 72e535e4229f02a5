//! Inputs that are replaced by their own output: one command at a time.
//!
//! Invariants: a command that works on a file in place holds a lock on it from before it is read until after it is
//! replaced. A command that waited reads the output of the previous one. On a file system without locks it runs
//! without.

use crate::beside::directory_of;
use crate::input::{self, InputFile};
use crate::reads;
use crate::same_inode;
use crate::write;
use hotswap_report::Diagnostic;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// As [`crate::open_or_stdin`], for a command that writes `output`: if that is the same file, it waits for other
/// commands that change it, and they wait until the input is dropped.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`], and [`hotswap_report::codes::UNFINISHED_WRITE`] of an earlier command.
pub fn open_to_change(path: &Path, output: &Path) -> Result<InputFile, Diagnostic> {
    if input::is_stdin(path) {
        return crate::open_or_stdin(path);
    }
    // By name: the file itself is another one as soon as the previous command has finished.
    let is_in_place = is_same_place(path, output)?;
    let opened = open_locked(path, is_in_place).map_err(|error| input::cannot_read(path, &error))?;
    // Behind the lock: until then another command may be at work.
    same_inode::check_finished(&write::resolve_link(path)?)?;
    Ok(opened)
}

/// The number of further names that a file has, where `output` replaces it: they keep the old content.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`] where a path cannot be examined.
pub fn other_names(path: &Path, output: &Path) -> Result<u64, Diagnostic> {
    if input::is_stdin(path) || !is_same_place(path, output)? {
        return Ok(0);
    }
    let meta = fs::metadata(path).map_err(|error| input::cannot_read(path, &error))?;
    Ok(if meta.is_file() { meta.nlink().saturating_sub(1) } else { 0 })
}

fn open_locked(path: &Path, is_in_place: bool) -> io::Result<InputFile> {
    loop {
        let file = File::open(path)?;
        let own = file.metadata()?;
        if is_in_place && own.is_file() {
            match flock(&file, FlockOperation::LockExclusive) {
                Err(Errno::INTR) => continue,
                // It was replaced during the wait.
                Ok(()) if !fs::metadata(path).is_ok_and(|now| is_same(&own, &now)) => continue,
                Ok(()) | Err(_) => {}
            }
        }
        return input::read_or_map(file);
    }
}

/// Whether both paths, their links followed, are one name in one directory. What could not be seen is an error: taken for another
/// place, the file would be replaced without its lock and without a word about its other names.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`] or [`hotswap_report::codes::CANNOT_WRITE`] for the path that cannot be examined.
pub fn is_same_place(one: &Path, other: &Path) -> Result<bool, Diagnostic> {
    // Equal paths need no answer of the system, which may fail.
    if one == other {
        return Ok(true);
    }
    let (one, other) = (write::resolve_link(one)?, write::resolve_link(other)?);
    if one.file_name() != other.file_name() {
        return Ok(false);
    }
    let parents = (reads::find_metadata(directory_of(&one))?, reads::find_metadata(directory_of(&other))?);
    Ok(matches!(parents, (Some(parent), Some(other)) if is_same(&parent, &other)))
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::replace_file;

    #[test]
    fn changes_in_place_follow_one_another() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("count");
        fs::write(&file, "0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let input = open_to_change(&file, &file).unwrap();
                        let number: u32 = std::str::from_utf8(&input).unwrap().parse().unwrap();
                        std::thread::yield_now();
                        replace_file(&file, (number + 1).to_string().as_bytes()).unwrap();
                        drop(input);
                    }
                });
            }
        });
        assert_eq!(fs::read(&file).unwrap(), b"100");
    }

    #[test]
    fn other_names_are_those_of_a_file_that_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link, output] = ["in", "link", "out"].map(|name| dir.path().join(name));
        fs::write(&file, "0").unwrap();
        assert_eq!(other_names(&file, &file).unwrap(), 0);
        fs::hard_link(&file, &link).unwrap();
        assert_eq!((other_names(&file, &file).unwrap(), other_names(&file, &output).unwrap()), (1, 0));
        replace_file(&file, b"1").unwrap();
        assert_eq!(fs::read(&link).unwrap(), b"0");
    }

    #[test]
    fn a_place_that_cannot_be_seen_is_not_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let (file, looped) = (dir.path().join("in"), dir.path().join("loop"));
        fs::write(&file, "0").unwrap();
        std::os::unix::fs::symlink("loop", &looped).unwrap();
        let unseen = looped.join("in");
        for error in [
            is_same_place(&file, &unseen).unwrap_err(),
            other_names(&file, &unseen).unwrap_err(),
            open_to_change(&file, &unseen).unwrap_err(),
        ] {
            assert!(error.to_string().contains("symbolic links"), "{error}");
        }
        assert!(is_same_place(&file, &dir.path().join("./in")).unwrap());
        assert!(!is_same_place(&file, &dir.path().join("absent/in")).unwrap());
    }

    #[test]
    fn other_outputs_need_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let (file, output) = (dir.path().join("in"), dir.path().join("out"));
        fs::write(&file, "0").unwrap();
        let held = open_to_change(&file, &file).unwrap();
        assert_eq!(&open_to_change(&file, &output).unwrap()[..], &held[..]);
    }
}
