//! The outcome of a command.

use hotswap_plan::Policy;
use hotswap_report::{Diagnostic, Severity};

/// The output of a command.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// For standard output.
    pub(crate) text: String,
    /// For standard error; the first error among them decides the exit code.
    pub(crate) problems: Vec<Diagnostic>,
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        Self { text, problems: Vec::new() }
    }
}

impl Outcome {
    /// Nothing but an error.
    pub(crate) fn failed(error: Diagnostic) -> Self {
        Self { text: String::new(), problems: vec![error] }
    }
}

/// The severity that the policy assigns to targets that could not be made.
pub(crate) fn severity(policy: Policy) -> Option<Severity> {
    match policy {
        Policy::Error | Policy::Compile => Some(Severity::Error),
        Policy::Warn => Some(Severity::Warning),
        Policy::Keep => None,
    }
}
