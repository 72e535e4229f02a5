//! The code objects of a file one by one, for the commands that judge them.

use crate::work::inventory::LookProgress;
use hotswap_report::Diagnostic;
use std::path::Path;

pub(crate) use hotswap_file_reports::code_objects::{
    finding_json, in_place, pass_over_unknown, rejected_json, rejected_text, visit_code_objects,
};

/// Calls `each` for the code objects of a file with place and target, and shows the progress of a long look.
///
/// # Errors
/// A file that cannot be read, or contains no code object.
pub(crate) fn code_objects(file: &Path, each: impl FnMut(&str, &str, &[u8])) -> Result<Vec<Diagnostic>, Diagnostic> {
    let bytes = hotswap_files::open_or_stdin(file)?;
    let contents = hotswap_bundle::find_containers(&bytes);
    let progress = LookProgress::of_contents(&contents);
    visit_code_objects(&contents, &|bytes| progress.advance(bytes), each)
}
