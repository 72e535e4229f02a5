//! Code objects of other GPUs with the same kernels, beside one whose code fails a check for a target.
//!
//! Invariant: the best source comes first, in the order of the product's table, whatever the order of the files.

use crate::plan::{Action, WantedTarget};
use hotswap_files::InputFile;
use hotswap_pipeline::{RetargetRequest, SourcePolicy};
use hotswap_plan::RetargetPair;
use hotswap_report::{Diagnostic, codes};
use std::path::Path;

/// A file that may take the place of an action's input.
struct OtherFile<'a> {
    path: &'a Path,
    content: InputFile,
}

/// The files that may take the place of an action's input.
pub(crate) struct OtherFiles<'a> {
    /// Each once, although several targets may be made from it.
    files: Vec<OtherFile<'a>>,
    pairs: Vec<RetargetPair>,
}

impl<'a> OtherFiles<'a> {
    /// Those with the same kernels as the input.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(crate) fn read(action: &'a Action, input: &[u8]) -> Result<Self, Diagnostic> {
        let mut found = Self { files: Vec::new(), pairs: Vec::new() };
        for other in &action.others {
            if !found.files.iter().any(|known| known.path == other.input) {
                let file = hotswap_files::open_input(&other.input)?;
                // A damaged file is not a source.
                if !hotswap_pipeline::has_same_kernels(input, &file).unwrap_or(false) {
                    continue;
                }
                found.files.push(OtherFile { path: &other.input, content: file });
            }
            let WantedTarget { target, source } = other.wanted.clone();
            found.pairs.push(RetargetPair { source, target });
        }
        Ok(found)
    }

    pub(crate) fn code_objects(&self) -> Vec<&[u8]> {
        self.files.iter().map(|file| &file.content[..]).collect()
    }

    /// The request with them as sources, after those that it has.
    pub(crate) fn add_to_request(&self, mut request: RetargetRequest) -> RetargetRequest {
        if let SourcePolicy::Only(pairs) = &mut request.sources {
            pairs.extend(self.pairs.iter().cloned());
        }
        request
    }
}

/// The remark that a target was made from another source than the one that its row names.
pub(crate) fn other_source_warning(row: &WantedTarget, source: &str) -> Diagnostic {
    let what = format!(
        "code for {} was made from that for {source}, because that for {} fails a check",
        row.target, row.source
    );
    Diagnostic::warning(codes::OTHER_SOURCE, what)
}
