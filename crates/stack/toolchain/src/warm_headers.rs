//! The precompiled headers in the user's cache: how many there are, and how much room they take.
//!
//! Absent on purpose: whether a header may still be used, which the driver wrapper finds out for each command.

use crate::part_report::{PartReport, PartState};
use crate::parts;
use hotswap_plan::warm_headers::{HEADER_FILE, HEADERS_LIMIT, STORED_HEADERS, WARM_HEADERS};
use hotswap_report::Diagnostic;
use std::fs;
use std::io;
use std::path::Path;

const MEBIBYTE: u64 = 1 << 20;

/// A part, if there are headers.
///
/// # Errors
/// The directory cannot be read.
pub(crate) fn examine() -> Result<Option<PartReport>, Diagnostic> {
    let Some(cache) = hotswap_files::cache_dir() else { return Ok(None) };
    let directory = cache.join(WARM_HEADERS);
    let sizes = header_sizes(&directory.join(STORED_HEADERS))
        .map_err(|error| hotswap_files::reads::unread_file(&directory, &error))?;
    if sizes.is_empty() {
        return Ok(None);
    }
    let bytes: u64 = sizes.iter().sum();
    let report = PartReport::new(parts::WARM_HEADERS, PartState::Good).with(None, Some(directory));
    Ok(Some(report.note(format!(
        "{} precompiled headers, {} MiB of at most {}; they may be removed at any time",
        sizes.len(),
        bytes.div_ceil(MEBIBYTE),
        HEADERS_LIMIT / MEBIBYTE
    ))))
}

/// The bytes of each header. Other commands make and remove headers meanwhile.
fn header_sizes(directory: &Path) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut sizes = Vec::new();
    for entry in entries {
        match fs::symlink_metadata(entry?.path().join(HEADER_FILE)) {
            Ok(meta) => sizes.push(meta.len()),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_counted_and_other_entries_are_not() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(header_sizes(&directory.path().join("absent")).unwrap(), [0; 0]);
        for name in ["one", "two", "refused"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        fs::write(directory.path().join("one").join(HEADER_FILE), [0; 3]).unwrap();
        fs::write(directory.path().join("two").join(HEADER_FILE), [0; 4]).unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        let mut sizes = header_sizes(directory.path()).unwrap();
        sizes.sort_unstable();
        assert_eq!(sizes, [3, 4]);
    }
}
