//! Folders for files that are kept between runs.
//!
//! The content is trusted, and programs are started according to it, so a folder is used only where no other user can
//! have put anything: it and every folder above it belong to this user or to root, and others cannot write to them
//! (except to a folder like `/tmp`, where the sticky bit keeps them from renaming files of other users).
//!
//! Invariant: [`own_folder`] is the one place that decides this.
//!
//! Absent on purpose: access control lists, and actions of root.

use rustix::process::geteuid;
use std::env;
use std::fs::{self, DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// `$XDG_CACHE_HOME/hotswap`, or `~/.cache/hotswap`; `None` where neither variable is set.
pub fn cache_dir() -> Option<PathBuf> {
    let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(base.join("hotswap"))
}

/// The reason why a folder is not used.
#[derive(Debug, Error)]
pub enum Untrusted {
    /// It cannot be made or examined.
    #[error("{}: {error}", .folder.display())]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// It belongs to another user.
    #[error("{} belongs to user {owner}", .folder.display())]
    Owner {
        /// The folder, or one above it.
        folder: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Other users may put files there.
    #[error("{} can be written by others (mode {:03o})", .folder.display(), .mode & 0o7777)]
    Open {
        /// The folder, or one above it.
        folder: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// Makes the folder, for this user alone, unless it exists, and returns its path without links.
///
/// # Errors
/// [`Untrusted`], with the offending folder; nothing in it may be trusted then.
pub fn own_folder(path: &Path) -> Result<PathBuf, Untrusted> {
    let unusable = |error| Untrusted::Unusable { folder: path.to_owned(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
    let folder = fs::canonicalize(path).map_err(unusable)?;
    for part in folder.ancestors() {
        let meta = fs::metadata(part).map_err(|error| Untrusted::Unusable { folder: part.to_owned(), error })?;
        judge(part, &meta, part == folder)?;
    }
    rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).map_err(|error| unusable(error.into()))?;
    Ok(folder)
}

fn judge(folder: &Path, meta: &Metadata, is_last: bool) -> Result<(), Untrusted> {
    const WRITABLE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let (owner, mode) = (meta.uid(), meta.mode());
    // Root can read and write everything anyway.
    if owner != geteuid().as_raw() && owner != 0 {
        return Err(Untrusted::Owner { folder: folder.to_owned(), owner });
    }
    let is_safe = mode & WRITABLE == 0 || (mode & STICKY != 0 && !is_last);
    if is_safe { Ok(()) } else { Err(Untrusted::Open { folder: folder.to_owned(), mode }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_of_our_own_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("a/cache");
        assert_eq!(own_folder(&cache).unwrap(), fs::canonicalize(&cache).unwrap());
        assert_eq!(fs::metadata(&cache).unwrap().mode() & 0o777, 0o700);
        let link = dir.path().join("link");
        symlink(&cache, &link).unwrap();
        assert_eq!(own_folder(&link).unwrap(), fs::canonicalize(&cache).unwrap());
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (above, cache) = (dir.path().join("a"), dir.path().join("a/cache"));
        own_folder(&cache).unwrap();
        for (path, mode, is_used) in [
            (&cache, 0o770, false),
            (&cache, 0o1777, false),
            (&cache, 0o755, true),
            (&above, 0o777, false),
            (&above, 0o775, false),
            (&above, 0o1777, true),
        ] {
            set(path, mode);
            let found = own_folder(&cache);
            assert_eq!(found.is_ok(), is_used, "{} {mode:o}: {found:?}", path.display());
            set(path, 0o700);
        }
    }

    #[test]
    fn a_folder_of_another_user_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (above, cache) = (dir.path().join("a"), dir.path().join("a/cache"));
        own_folder(&cache).unwrap();
        if chown(&cache, Some(65534), None).is_err() {
            // Bypasses the output capture of the test runner, so that it is counted.
            let line = "a_folder_of_another_user_is_not: skipped: only root can give folders away";
            let _ = std::io::Write::write_all(&mut std::io::stdout().lock(), format!("{line}\n").as_bytes());
            return;
        }
        assert!(matches!(own_folder(&cache), Err(Untrusted::Owner { owner: 65534, .. })));
        chown(&cache, Some(0), None).unwrap();
        chown(&above, Some(65534), None).unwrap();
        assert!(
            matches!(own_folder(&cache), Err(Untrusted::Owner { folder, .. }) if folder == fs::canonicalize(&above).unwrap())
        );
        // A link of another user points to a folder of that user, too.
        let link = dir.path().join("link");
        symlink(&above, &link).unwrap();
        assert!(own_folder(&link.join("cache")).is_err());
    }
}
