//! Directories for files that are kept between runs.
//!
//! The content is trusted, and programs are started according to it, so a directory is used only where no other user can
//! have put anything: it and every directory above it belong to this user or to root, and others cannot write to them
//! (except to a directory like `/tmp`, where the sticky bit keeps them from renaming files of other users). In a user namespace
//! the owner of the root directory takes root's place for the directories above.
//!
//! Invariant: [`own_directory`] is the one place that decides this.
//!
//! Absent on purpose: access control lists, and actions of root.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::env;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// `$XDG_CACHE_HOME/hotswap`, or `~/.cache/hotswap`; `None` where neither variable is set.
pub fn cache_dir() -> Option<PathBuf> {
    let base =
        absolute_path_variable("XDG_CACHE_HOME").or_else(|| Some(absolute_path_variable("HOME")?.join(".cache")))?;
    Some(base.join("hotswap"))
}

fn absolute_path_variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The reason why a directory is not used.
#[derive(Debug, Error)]
pub enum Untrusted {
    /// It cannot be made or examined.
    #[error("{}: {error}", .directory.display())]
    Unusable {
        directory: PathBuf,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// It belongs to another user.
    #[error("{} belongs to user {owner}", .directory.display())]
    Owner {
        /// The directory, or one above it.
        directory: PathBuf,
        owner: u32,
    },
    /// Other users may put files there.
    #[error("{} can be written by others (mode {:03o})", .directory.display(), .mode & 0o7777)]
    Open {
        /// The directory, or one above it.
        directory: PathBuf,
        mode: u32,
    },
}

/// Makes the directory, for this user alone, unless it exists, and returns its path without links. A link that another user
/// has made is not followed, wherever it leads.
///
/// # Errors
/// [`Untrusted`], with the offending directory; nothing in it may be trusted then.
pub fn own_directory(path: &Path) -> Result<PathBuf, Untrusted> {
    let existing = check_links(path, MOST_LINKS)?;
    make_below(&existing, path).map_err(|one| unusable_own_directory(one, path))?;
    let directory = fs::canonicalize(path).map_err(|one| unusable_own_directory(one, path))?;
    for part in directory.ancestors() {
        let meta = fs::metadata(part).map_err(|error| Untrusted::Unusable { directory: part.to_owned(), error })?;
        check_trusted(part, &meta, part == directory)?;
    }
    rustix::fs::access(&directory, rustix::fs::Access::WRITE_OK)
        .map_err(|error| unusable_own_directory(error.into(), path))?;
    Ok(directory)
}

fn unusable_own_directory(error: io::Error, path: &Path) -> Untrusted {
    Untrusted::Unusable { directory: path.to_owned(), error }
}

/// The system's own limit of links on a path.
const MOST_LINKS: usize = 40;

/// Refuses links of other users on the way to a path; returns the part of the path that exists.
fn check_links(path: &Path, links_left: usize) -> Result<PathBuf, Untrusted> {
    let mut existing = PathBuf::new();
    for part in path.components() {
        let next = existing.join(part);
        let meta = match fs::symlink_metadata(&next) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(unusable_link_directory(&next, error)),
        };
        if meta.is_symlink() {
            if !is_trusted_link(&existing, &meta) {
                return Err(Untrusted::Owner { directory: next, owner: meta.uid() });
            }
            let left = links_left.checked_sub(1).ok_or_else(|| unusable_link_directory(&next, Errno::LOOP.into()))?;
            let to = fs::read_link(&next).map_err(|error| unusable_link_directory(&next, error))?;
            check_links(&existing.join(to), left)?;
        }
        existing = next;
    }
    Ok(existing)
}

fn unusable_link_directory(directory: &Path, error: io::Error) -> Untrusted {
    Untrusted::Unusable { directory: directory.to_owned(), error }
}

/// Makes the directories of a path below one that exists. Each is opened in the one before it without following links, so that
/// one that is planted meanwhile leads nowhere.
fn make_below(existing: &Path, path: &Path) -> io::Result<()> {
    let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let mut directory = rustix::fs::open(existing, flags, Mode::empty())?;
    for name in rest.components() {
        match rustix::fs::mkdirat(&directory, name.as_os_str(), Mode::RWXU) {
            // Another process of this user may have made it.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        directory = rustix::fs::openat(&directory, name.as_os_str(), flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(())
}

/// Root can read and write everything anyway.
fn is_own_or_roots(owner: u32) -> bool {
    owner == geteuid().as_raw() || owner == 0
}

/// In a user namespace, as containers without root have it, the host's root is shown as the user for unmapped IDs, and so are
/// the host's other users. Directories above ours may belong to that user, if the root directory does; ours may not.
fn owns_root_directory(owner: u32) -> bool {
    fs::metadata("/").is_ok_and(|root| root.uid() == owner)
}

/// A link of an unmapped user counts only where no one else can have made it.
fn is_trusted_link(parent: &Path, link: &Metadata) -> bool {
    let is_closed = fs::metadata(parent).is_ok_and(|meta| meta.mode() & 0o022 == 0);
    is_own_or_roots(link.uid()) || (is_closed && owns_root_directory(link.uid()))
}

fn check_trusted(directory: &Path, meta: &Metadata, is_last: bool) -> Result<(), Untrusted> {
    const WRITABLE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let (owner, mode) = (meta.uid(), meta.mode());
    if !is_own_or_roots(owner) && (is_last || !owns_root_directory(owner)) {
        return Err(Untrusted::Owner { directory: directory.to_owned(), owner });
    }
    let is_safe = mode & WRITABLE == 0 || (mode & STICKY != 0 && !is_last);
    if is_safe { Ok(()) } else { Err(Untrusted::Open { directory: directory.to_owned(), mode }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_of_our_own_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("a/cache");
        assert_eq!(own_directory(&cache).unwrap(), fs::canonicalize(&cache).unwrap());
        assert_eq!(fs::metadata(&cache).unwrap().mode() & 0o777, 0o700);
        let link = dir.path().join("link");
        symlink(&cache, &link).unwrap();
        assert_eq!(own_directory(&link).unwrap(), fs::canonicalize(&cache).unwrap());
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (above, cache) = (dir.path().join("a"), dir.path().join("a/cache"));
        own_directory(&cache).unwrap();
        for (path, mode, is_used) in [
            (&cache, 0o770, false),
            (&cache, 0o1777, false),
            (&cache, 0o755, true),
            (&above, 0o777, false),
            (&above, 0o775, false),
            (&above, 0o1777, true),
        ] {
            set(path, mode);
            let found = own_directory(&cache);
            assert_eq!(found.is_ok(), is_used, "{} {mode:o}: {found:?}", path.display());
            set(path, 0o700);
        }
    }

    #[test]
    fn a_directory_of_another_user_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (above, cache) = (dir.path().join("a"), dir.path().join("a/cache"));
        own_directory(&cache).unwrap();
        if chown(&cache, Some(65534), None).is_err() {
            // Bypasses the output capture of the test runner, so that it is counted.
            let line = "a_directory_of_another_user_is_not: skipped: only root can give directories away";
            let _ = std::io::Write::write_all(&mut std::io::stdout().lock(), format!("{line}\n").as_bytes());
            return;
        }
        assert!(matches!(own_directory(&cache), Err(Untrusted::Owner { owner: 65534, .. })));
        chown(&cache, Some(0), None).unwrap();
        chown(&above, Some(65534), None).unwrap();
        assert!(
            matches!(own_directory(&cache), Err(Untrusted::Owner { directory, .. }) if directory == fs::canonicalize(&above).unwrap())
        );
        // A link of another user is not followed, also where it leads to a directory of root's.
        let (shared, private) = (dir.path().join("shared"), dir.path().join("private"));
        fs::create_dir(&shared).unwrap();
        fs::create_dir(&private).unwrap();
        set(&shared, 0o1777);
        symlink(&private, shared.join("hotswap")).unwrap();
        assert!(own_directory(&shared.join("hotswap/manifests")).is_ok());
        fs::remove_dir(private.join("manifests")).unwrap();
        std::os::unix::fs::lchown(shared.join("hotswap"), Some(65534), None).unwrap();
        assert!(matches!(own_directory(&shared.join("hotswap")), Err(Untrusted::Owner { owner: 65534, .. })));
        assert!(own_directory(&shared.join("hotswap/manifests")).is_err());
        assert!(!private.join("manifests").exists());
        // A link of another user points to a directory of that user, too.
        let link = dir.path().join("link");
        symlink(&above, &link).unwrap();
        assert!(own_directory(&link.join("cache")).is_err());
    }

    /// Runs a command as a user who is root in a user namespace, where the host's root is unmapped.
    fn run_in_user_namespace(command: &[&str]) -> std::process::Output {
        let switch =
            "[ $(id -u) != 0 ] || set -- setpriv --reuid 61234 --regid 61234 --clear-groups \"$@\"; exec \"$@\"";
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", switch, "sh", "unshare", "--user", "--map-root-user"]).args(command);
        shell.env_remove("TMPDIR").current_dir("/").output().unwrap()
    }

    /// `/tmp` belongs to the user for unmapped IDs there.
    #[test]
    fn in_a_user_namespace_the_directories_above_may_be_the_hosts() {
        if !run_in_user_namespace(&["true"]).status.success() {
            let line = "in_a_user_namespace: skipped: user namespaces are forbidden";
            let _ = std::io::Write::write_all(&mut std::io::stdout().lock(), format!("{line}\n").as_bytes());
            return;
        }
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        set(directory.path(), 0o755);
        let program = directory.path().join("tests");
        // By a process of its own: this one may start others while the copy is open for writing.
        let copied = std::process::Command::new("cp").arg(env::current_exe().unwrap()).arg(&program).status();
        assert!(copied.unwrap().success());
        for test in ["a_directory_of_our_own_is_used", "a_directory_that_others_can_write_to_is_not"] {
            let words = [program.to_str().unwrap(), "--exact", &format!("cache::tests::{test}")];
            let output = run_in_user_namespace(&words);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && text.contains("1 passed"), "{test}: {text}");
        }
    }
}
