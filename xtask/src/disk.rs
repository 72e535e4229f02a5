//! Sizes of directories and room on file systems.

use crate::outcome::{During, Outcome};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes that the files below a directory take on the disk; files that cannot be read count as nothing.
pub(crate) fn size_of(directory: &Path) -> u64 {
    add_sizes(directory, &mut BTreeSet::new())
}

/// A file with several names, as cargo gives them to programs, counts once.
fn add_sizes(directory: &Path, linked: &mut BTreeSet<u64>) -> u64 {
    let mut bytes = 0;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            bytes += add_sizes(&entry.path(), linked);
        } else if metadata.nlink() > 1 && !linked.insert(metadata.ino()) {
            continue;
        }
        bytes += metadata.blocks() * 512;
    }
    bytes
}

/// Room for a user's files in a directory, which need not exist yet.
pub(crate) struct FreeSpace {
    /// Bytes that can be written.
    pub(crate) bytes: u64,
    /// The number of the file system.
    pub(crate) device: u64,
}

/// The room where a directory is or will be made.
pub(crate) fn free_space(directory: &Path) -> Outcome<FreeSpace> {
    let existing = directory.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let system = rustix::fs::statvfs(existing).during("read the file system of", existing)?;
    let device = fs::metadata(existing).during("read", existing)?.dev();
    Ok(FreeSpace { bytes: system.f_bavail * system.f_frsize, device })
}

/// `1.4 GB`, `12 MB`.
pub(crate) fn in_words(bytes: u64) -> String {
    let megabytes = bytes as f64 / 1e6;
    if megabytes < 1000.0 { format!("{megabytes:.0} MB") } else { format!("{:.1} GB", megabytes / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_all_files_below() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("a")).unwrap();
        fs::write(directory.path().join("a/b"), vec![1; 1 << 20]).unwrap();
        fs::hard_link(directory.path().join("a/b"), directory.path().join("a/c")).unwrap();
        assert!((1 << 20..1 << 21).contains(&size_of(directory.path())));
        assert_eq!(size_of(&directory.path().join("absent")), 0);
        let [here, later] = ["", "absent/b"].map(|name| free_space(&directory.path().join(name)).unwrap().device);
        assert_eq!(here, later);
        assert_eq!((in_words(999_000_000), in_words(1_440_000_000)), ("999 MB".to_owned(), "1.4 GB".to_owned()));
    }
}
