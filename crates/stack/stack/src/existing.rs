//! Looks at paths of a destination: something else than expected is an answer, and a failure of the system is an error.

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
        Err(error) => Err(Diagnostic::error(codes::CANNOT_READ, error.to_string()).in_file(path)),
    }
}

/// Whether a file is there, not a link to one.
pub(crate) fn is_file(path: &Path) -> Result<bool, Diagnostic> {
    match path.symlink_metadata() {
        Ok(meta) => Ok(meta.is_file()),
        Err(error) if is_other_kind(&error) => Ok(false),
        Err(error) => Err(Diagnostic::error(codes::CANNOT_READ, error.to_string()).in_file(path)),
    }
}
