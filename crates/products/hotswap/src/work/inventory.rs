//! The input of all reading commands, their JSON, and the progress of a long look.

mod look_progress;

pub(crate) use hotswap_bundle::inventory::{ImageRow, InventoryContainer, InventoryDepth, hash_problem, visit};
pub(crate) use hotswap_file_reports::container_json::{UNREAD, container_json};
pub(crate) use look_progress::LookProgress;

use hotswap_bundle::FoundContents;
use hotswap_report::Diagnostic;

/// Visits the containers, no deeper than requested, for commands that print when they have read all: a long look shows
/// its progress.
pub(crate) fn visit_to<'a>(
    contents: &FoundContents<'a>,
    depth: InventoryDepth,
    visit: impl FnMut(InventoryContainer<'a>),
) -> Vec<Diagnostic> {
    let progress = LookProgress::of_contents(contents);
    hotswap_bundle::inventory::visit_to(contents, depth, &|bytes| progress.advance(bytes), visit)
}
