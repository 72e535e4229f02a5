//! The compiler's device link, which a companion repeats with one more argument.

use crate::child;
use crate::context::CallContext;
use crate::words::CommandLine;
use hotswap_report::Diagnostic;
use std::ffi::OsString;
use std::path::Path;

/// One device link.
pub(crate) struct Linker<'l> {
    pub(crate) context: &'l CallContext,
    pub(crate) line: &'l CommandLine<'l>,
    pub(crate) real: &'l Path,
    pub(crate) output: &'l Path,
}

impl Linker<'_> {
    /// Runs the compiler's link with one additional argument; returns the exit code.
    pub(crate) fn link(&self, more: Option<OsString>) -> Result<u8, Diagnostic> {
        let mut stripped = self.line.stripped()?;
        stripped.words.extend(more);
        child::run(self.context, self.real, &stripped.words)
    }
}
