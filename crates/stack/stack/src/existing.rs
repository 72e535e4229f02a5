//! Looks at paths of a destination: something else than expected is an answer, and a failure of the system is an error.

use crate::hash;
use crate::journal::JournalHistory;
use hotswap_load_model::tree::is_missing;
use hotswap_report::{Diagnostic, codes};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Whether the path is absent, or is not a link.
pub(crate) fn is_other_kind(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput)
}

/// The text of a link; `None` for something else, and where nothing is.
pub(crate) fn text_of_link(path: &Path) -> Result<Option<PathBuf>, Diagnostic> {
    match fs::read_link(path) {
        Ok(to) => Ok(Some(to)),
        Err(error) if is_other_kind(&error) => Ok(None),
        Err(error) => Err(Diagnostic::cannot_read(path, error)),
    }
}

/// Whether a file is there, not a link to one.
pub(crate) fn is_file(path: &Path) -> Result<bool, Diagnostic> {
    match path.symlink_metadata() {
        Ok(meta) => Ok(meta.is_file()),
        Err(error) if is_other_kind(&error) => Ok(false),
        Err(error) => Err(Diagnostic::cannot_read(path, error)),
    }
}

/// The hash of an output of an earlier run that is there.
///
/// # Errors
/// [`codes::NOT_OURS`] for a file that HotSwap did not write, or that was changed since.
pub(crate) fn hash_of_output(
    destination: &Path,
    past: &JournalHistory,
    output: &Path,
) -> Result<Option<String>, Diagnostic> {
    let path = destination.join(output);
    if is_missing(&path)? {
        return Ok(None);
    }
    let meta = path.symlink_metadata().map_err(|error| Diagnostic::cannot_read(&path, error))?;
    if !meta.is_file() {
        return Err(foreign_file_error("it is no file", &path));
    }
    let sha256 = hash::of_file(&path)?;
    if past.has_row(output, &sha256) {
        return Ok(Some(sha256));
    }
    let is_changed = past.files.contains_key(output);
    Err(foreign_file_error(if is_changed { "it was changed" } else { "HotSwap has no record of it" }, &path))
}

fn foreign_file_error(what: &str, path: &Path) -> Diagnostic {
    Diagnostic::error(codes::NOT_OURS, what).in_file(path)
}
