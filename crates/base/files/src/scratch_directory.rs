//! Directories for the files of other tools, which cannot be unnamed. They are removed when their owner ends; those of
//! killed owners are removed when the next one is made.
//!
//! Invariants: the user of a directory holds a lock on it, which the system drops with the process. So no directory in
//! use is removed, not even where the owner is in another container and its process number means nothing here. A
//! directory of another user, a link or anything else of that name is left alone, and so is everything on a file system
//! without locks. A directory that cannot be locked has a name that is not looked for.

use hotswap_report::Diagnostic;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tempfile::TempDir;

/// A directory that is removed on drop.
#[derive(Debug)]
pub struct ScratchDirectory {
    directory: TempDir,
    /// Holds the lock until the directory is removed; absent where it cannot be locked.
    _lock: Option<File>,
}

/// Begins the name of a directory that could not be locked, before its prefix. Of a killed owner it stays, and is hidden.
const UNLOCKED: &str = ".unlocked-";

/// More than any number of processes that begin at once can spoil.
const ATTEMPTS: usize = 1000;

impl ScratchDirectory {
    /// Makes one below `parent`, for this user alone. Its name begins with `prefix`, which no other file
    /// of `parent` may use.
    ///
    /// # Errors
    /// [`codes::CANNOT_WRITE`] with the parent.
    pub fn new(parent: &Path, prefix: &str) -> Result<Self, Diagnostic> {
        remove_abandoned(parent, prefix);
        // Other processes that begin at the same moment may take a new directory for an abandoned one, each time anew.
        let made = (0..ATTEMPTS).find_map(|_| make_locked(parent, prefix).transpose());
        let made = made.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()));
        made.map_err(|error| Diagnostic::cannot_write(parent, error))
    }

    /// Makes one in the directory for temporary files.
    ///
    /// # Errors
    /// As [`ScratchDirectory::new`], for that directory.
    pub fn temporary(prefix: &str) -> Result<Self, Diagnostic> {
        Self::new(&std::env::temp_dir(), prefix)
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for ScratchDirectory {
    /// A removal that failed is tried once more, by the directory's own: a moment's error leaves nothing in the user's directory.
    fn drop(&mut self) {
        if fs::remove_dir_all(self.directory.path()).is_ok() {
            self.directory.disable_cleanup(true);
        }
    }
}

/// `None` if another process took the new directory for an abandoned one before it was locked.
fn make_locked(parent: &Path, prefix: &str) -> io::Result<Option<ScratchDirectory>> {
    let directory = make_private(parent, prefix)?;
    let lock = open_directory(directory.path()).ok().filter(|file| flock(file, FlockOperation::LockShared).is_ok());
    if lock.is_none() && directory.path().try_exists()? {
        // The next one of this prefix, perhaps this process's own, would take it for an abandoned one.
        let directory = make_private(parent, &format!("{UNLOCKED}{prefix}"))?;
        return Ok(Some(ScratchDirectory { directory, _lock: None }));
    }
    let is_there = directory.path().try_exists()?;
    Ok(is_there.then_some(ScratchDirectory { directory, _lock: lock }))
}

fn make_private(parent: &Path, prefix: &str) -> io::Result<TempDir> {
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    tempfile::Builder::new().prefix(prefix).permissions(private).tempdir_in(parent)
}

fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?.into())
}

/// Removes the directories with that prefix that belong to this user and are not locked.
fn remove_abandoned(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            continue;
        }
        let Ok(directory) = open_directory(&entry.path()) else { continue };
        let is_ours = directory.metadata().is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw());
        if is_ours && flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Directories that cannot be removed stay for the next run.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const PREFIX: &str = "hotswap-test.";

    fn names(parent: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_directory_in_use_stays_and_an_abandoned_one_goes() {
        let parent = tempfile::tempdir().unwrap();
        let used = ScratchDirectory::new(parent.path(), PREFIX).unwrap();
        assert_eq!(fs::metadata(used.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let abandoned = parent.path().join("hotswap-test.old");
        fs::create_dir(&abandoned).unwrap();
        fs::write(abandoned.join("lto.o"), "code").unwrap();
        let unlocked = format!("{UNLOCKED}{PREFIX}x");
        for other in ["hotswap-other.old", "mine", &unlocked] {
            fs::create_dir(parent.path().join(other)).unwrap();
        }
        fs::write(parent.path().join("hotswap-test.file"), "").unwrap();
        symlink(parent.path().join("mine"), parent.path().join("hotswap-test.link")).unwrap();
        let second = ScratchDirectory::new(parent.path(), PREFIX).unwrap();
        assert!(used.path().exists() && second.path().exists() && !abandoned.exists());
        drop((used, second));
        assert_eq!(
            names(parent.path()),
            [&unlocked, "hotswap-other.old", "hotswap-test.file", "hotswap-test.link", "mine"]
        );
    }

    #[test]
    fn processes_that_begin_at_once_take_nothing_from_one_another() {
        let parent = tempfile::tempdir().unwrap();
        crate::on_all_cores(64, |_| {
            for _ in 0..50 {
                let directory = ScratchDirectory::new(parent.path(), PREFIX).unwrap();
                fs::write(directory.path().join("file"), "").unwrap();
            }
        });
        assert_eq!(names(parent.path()), [""; 0]);
    }
}
