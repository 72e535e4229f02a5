//! The outcome of a command.

use hotswap_report::{Diagnostic, Severity, codes};
use std::path::Path;

/// The output of a command.
#[derive(Debug, Default)]
pub(crate) struct CommandOutcome {
    /// The text for standard output.
    pub(crate) text: String,
    /// For standard error; the first error among them decides the exit code.
    pub(crate) problems: Vec<Diagnostic>,
    /// Whether the command changes files, and had nothing to change.
    pub(crate) is_unchanged: bool,
}

impl From<String> for CommandOutcome {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl CommandOutcome {
    /// Nothing but an error.
    pub(crate) fn failed(error: Diagnostic) -> Self {
        Self { problems: vec![error], ..Self::default() }
    }

    /// Whether an error is among the problems.
    pub(crate) fn has_error(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Adds the note of a command that had nothing to change, unless it failed: an error has its own exit code.
    pub(crate) fn note_unchanged(mut self, file: &Path, what: &str) -> Self {
        if !self.has_error() {
            self.is_unchanged = true;
            let note = Diagnostic { severity: Severity::Note, ..Diagnostic::error(codes::UNCHANGED, what) };
            self.problems.push(note.in_file(file));
        }
        self
    }
}
