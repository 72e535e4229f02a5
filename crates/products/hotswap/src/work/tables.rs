//! The tables of device functions of the code objects of a file, for the commands that show them.

use crate::work::inventory::LookProgress;
use hotswap_file_reports::function_tables::find_tables;
use hotswap_report::Diagnostic;
use std::path::Path;

pub(crate) use hotswap_file_reports::function_tables::{
    FoundTables, KernelBytes, TableRequest, TabledObject, is_for_target, kernel_bytes, shown, title,
};

/// The tables of all code objects for `target`, or of all, with the problems of unreadable ones.
///
/// # Errors
/// A file that cannot be read, lacks a code object, or lacks one for the target.
pub(crate) fn tables(file: &Path, target: Option<&str>) -> Result<FoundTables, Diagnostic> {
    requested_tables(file, TableRequest { target, hashed: false })
}

/// As [`tables`], by a request.
///
/// # Errors
/// The same as those of [`tables`].
pub(crate) fn requested_tables(file: &Path, request: TableRequest<'_>) -> Result<FoundTables, Diagnostic> {
    let bytes = hotswap_files::open_or_stdin(file).map_err(|error| error.in_file(file))?;
    let contents = hotswap_bundle::find_containers(&bytes);
    let progress = LookProgress::of_contents(&contents);
    find_tables(file, &contents, request, &|bytes| progress.advance(bytes))
}
