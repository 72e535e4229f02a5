//! One output of a served tree: what is asked of its maker, and how it came about.

use crate::plan::Action;
use crate::rules::FileKind;
use hotswap_report::Diagnostic;
use std::path::Path;

/// One output to make.
pub(crate) struct OutputRequest<'o> {
    pub(crate) action: &'o Action,
    /// Path of the output.
    pub(crate) output: &'o Path,
    /// Whether it is a program or library, which is worth all cores: small outputs are made several at a time.
    pub(crate) is_large: bool,
    /// To be called with the hash of the new content ([`hash`]) before it gets the output's name.
    pub(crate) before_named: &'o BeforeNamed<'o>,
}

/// Notes the hash of an output.
pub(crate) type BeforeNamed<'b> = dyn Fn(String) -> Result<(), Diagnostic> + Sync + 'b;

/// The way in which an output was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputWay {
    Written,
    /// Nothing needs to be added to the input.
    Unchanged,
}

/// Whether it is a program or library.
pub(crate) fn is_large_output(action: &Action) -> bool {
    matches!(action.kind, FileKind::FatBinary | FileKind::Host)
}
