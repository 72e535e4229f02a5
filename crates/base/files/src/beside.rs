//! Names beside a target for files that are not complete yet, and the removal of those that killed processes have left.

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::process::{Pid, test_kill_process};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The directory that contains a path.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The directory of a process's open files (`man 5 proc`), through which an unnamed file gets its name.
const OPEN_FILES: &str = "/proc/self/fd";

/// A file of that directory without a name, which is removed with the process.
///
/// # Errors
/// The system's; also where the file could not get a name later, as in a root directory without `/proc`.
pub(crate) fn unnamed_file(directory: &Path) -> io::Result<File> {
    unnamed_file_with(directory, Path::new(OPEN_FILES))
}

fn unnamed_file_with(directory: &Path, open_files: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(CWD, directory, flags, Mode::from_raw_mode(0o600))?);
    fs::symlink_metadata(open_files.join(file.as_raw_fd().to_string()))?;
    Ok(file)
}

/// Gives an unnamed file a name.
pub(crate) fn name_file(file: &File, path: &Path) -> io::Result<()> {
    let source = Path::new(OPEN_FILES).join(file.as_raw_fd().to_string());
    Ok(rustix::fs::linkat(CWD, source, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Removes the temporary files of this target whose processes have ended: they were killed between two steps. A directory is
/// read once in a run, or many files in it would take the square of their number.
pub fn remove_left_over(target: &Path) {
    static LEFT_OVER: Mutex<BTreeMap<PathBuf, Vec<OsString>>> = Mutex::new(BTreeMap::new());
    let directory = directory_of(target);
    let mut known = LEFT_OVER.lock().unwrap_or_else(PoisonError::into_inner);
    let left = known.entry(directory.to_owned()).or_insert_with(|| left_over_in(directory));
    if left.is_empty() {
        return;
    }
    let prefix = temporary_prefix(target);
    for name in left.extract_if(.., |name| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes())) {
        // A file that cannot be removed stays.
        let _ = fs::remove_file(directory.join(name));
    }
}

/// The names of temporary files whose processes have ended.
fn left_over_in(directory: &Path) -> Vec<OsString> {
    // A directory that cannot be read keeps them.
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| is_left_over(name.as_bytes())).collect()
}

fn is_left_over(name: &[u8]) -> bool {
    let Some(at) = name.windows(MARK.len()).rposition(|part| part == MARK.as_bytes()) else { return false };
    let process = name[at + MARK.len()..].split(|byte| *byte == b'.').next();
    let process = process.and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.parse().ok());
    // Any other answer than "no such process" may be about a living one: that of another user, for example.
    process.and_then(Pid::from_raw).is_some_and(|process| test_kill_process(process) == Err(rustix::io::Errno::SRCH))
}

/// The longest names and paths of Linux, and the bytes that follow the mark in a temporary name.
pub(crate) const LONGEST_NAME: usize = 255;
pub(crate) const LONGEST_PATH: usize = 4095;
const MARK: &str = ".hotswap-tmp.";
const APPENDED: usize = "4294967295.4294967295".len();

/// `.NAME.hotswap-tmp.`, to which process and number are appended. Of a long name only the begin is used, so that every name that a
/// file may have can be written.
fn temporary_prefix(target: &Path) -> OsString {
    hidden_name(target, MARK, APPENDED)
}

/// `.NAME` and a mark, to which so many bytes can be appended.
pub(crate) fn hidden_name(target: &Path, mark: &str, appended: usize) -> OsString {
    let name = target.file_name().unwrap_or_default().as_bytes();
    let path = target.as_os_str().len();
    let more = 1 + mark.len() + appended;
    let over = (name.len() + more).saturating_sub(LONGEST_NAME).max((path + more).saturating_sub(LONGEST_PATH));
    let kept = &name[..name.len().saturating_sub(over)];
    OsString::from_vec([b".", kept, mark.as_bytes()].concat())
}

/// A name unique to this process: two processes may write one target at once, and the last one wins.
pub(crate) fn temporary_name(target: &Path) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut name = temporary_prefix(target);
    name.push(format!("{}.{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a root directory without `/proc` a file that is made without a name could never get one.
    #[test]
    fn a_file_that_could_not_get_a_name_is_not_made() {
        let directory = tempfile::tempdir().unwrap();
        let file = unnamed_file(directory.path()).unwrap();
        name_file(&file, &directory.path().join("named")).unwrap();
        let error = unnamed_file_with(directory.path(), &directory.path().join("proc")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
