//! Looks at files: there, not there, or an error. What could not be seen is not absent: a plan, a mark or a configuration that a
//! failed read hides would be lost without a word.
//!
//! Absent on purpose: caches, where a failed read costs only time.

use hotswap_report::Diagnostic;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The system's number for a name that is too long for a file.
const NAME_TOO_LONG: i32 = rustix::io::Errno::NAMETOOLONG.raw_os_error();

/// Whether the error says that nothing has that path.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(NAME_TOO_LONG)
}

/// The error for a file that could not be read.
pub fn unread_file(path: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::cannot_read(path, error)
}

fn unless_absent<T>(path: &Path, found: io::Result<T>) -> Result<Option<T>, Diagnostic> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(unread_file(path, &error)),
    }
}

/// The metadata of a file; `None` where nothing has that path.
///
/// # Errors
/// [`codes::CANNOT_READ`] where the system does not say.
pub fn find_metadata(path: &Path) -> Result<Option<Metadata>, Diagnostic> {
    unless_absent(path, fs::metadata(path))
}

/// Whether something has that path.
///
/// # Errors
/// [`codes::CANNOT_READ`] where the system does not say.
pub fn is_there(path: &Path) -> Result<bool, Diagnostic> {
    find_metadata(path).map(|found| found.is_some())
}

/// Whether that is a regular file.
///
/// # Errors
/// [`codes::CANNOT_READ`] where the system does not say.
pub fn is_regular(path: &Path) -> Result<bool, Diagnostic> {
    find_metadata(path).map(|found| found.is_some_and(|meta| meta.is_file()))
}

/// The paths in a directory, sorted; none where there is no directory.
///
/// # Errors
/// [`codes::CANNOT_READ`]; a directory that is gone after the look at it is an error, too.
pub fn paths_in(directory: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    if !find_metadata(directory)?.is_some_and(|meta| meta.is_dir()) {
        return Ok(Vec::new());
    }
    let read = fs::read_dir(directory).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = read.map_err(|error| unread_file(directory, &error))?;
    paths.sort_unstable();
    Ok(paths)
}

/// The path without links; `None` where nothing has it.
///
/// # Errors
/// [`codes::CANNOT_READ`] for any failure but its absence.
pub fn resolve_path(path: &Path) -> Result<Option<PathBuf>, Diagnostic> {
    unless_absent(path, fs::canonicalize(path))
}

/// A regular file, open for reading; `None` where there is none.
///
/// # Errors
/// [`codes::CANNOT_READ`] for any failure but its absence.
pub fn open_regular(path: &Path) -> Result<Option<File>, Diagnostic> {
    if !is_regular(path)? {
        return Ok(None);
    }
    unless_absent(path, File::open(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_report::codes;

    #[test]
    fn a_file_is_there_or_not_there_or_unread() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "x").unwrap();
        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        assert!(is_regular(&at("file")).unwrap() && open_regular(&at("file")).unwrap().is_some());
        assert!(is_there(dir.path()).unwrap() && open_regular(dir.path()).unwrap().is_none());
        for absent in [at("absent"), at("file/below"), at(&"x".repeat(300))] {
            assert!(!is_there(&absent).unwrap() && resolve_path(&absent).unwrap().is_none(), "{absent:?}");
        }
        // A link that names itself is there, and the system cannot follow it.
        for error in [is_there(&at("loop")).unwrap_err(), resolve_path(&at("loop")).unwrap_err()] {
            assert_eq!(error.code, codes::CANNOT_READ);
            assert!(error.to_string().contains("symbolic links"), "{error}");
        }
    }
}
