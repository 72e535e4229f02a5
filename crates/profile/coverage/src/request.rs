//! The request for a report of coverage.

use crate::DirectoryMap;
use crate::profile_files::FailureMode;
use std::path::{Path, PathBuf};

/// The program to measure, and how.
pub struct CoverageRequest<'r> {
    pub program: &'r Path,
    /// Further libraries of the program.
    pub objects: &'r [PathBuf],
    /// The only target that counts; `None` for all.
    pub target: Option<&'r str>,
    /// Expressions for the names of sources that are left out.
    pub ignored_names: &'r [String],
    pub path_map: &'r [DirectoryMap],
    /// Whether what does not fit is an error.
    pub is_strict: bool,
    pub failure_mode: FailureMode,
}
