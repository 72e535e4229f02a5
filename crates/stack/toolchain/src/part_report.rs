//! The findings about a part of the tool chain.

use crate::parts::ToolchainPart;
use hotswap_report::Diagnostic;
use std::path::PathBuf;

/// The result for one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartState {
    Good,
    Missing,
    /// It is there, and cannot be used.
    Unusable,
    /// Something that it depends on is missing.
    NotExamined,
    /// It is not known, because the system could not read something of it.
    Unread,
}

/// The findings about one part.
#[derive(Debug)]
pub struct PartReport {
    pub(crate) part: &'static ToolchainPart,
    pub state: PartState,
    pub(crate) version: Option<String>,
    pub(crate) path: Option<PathBuf>,
    /// Processors that it has code or code generation for.
    pub(crate) targets: Vec<String>,
    /// Facts and ways out, each a sentence without a final stop.
    pub(crate) notes: Vec<String>,
    /// The error of the read by which it is not known.
    pub unread: Option<Diagnostic>,
}

impl PartReport {
    pub(crate) fn new(part: &'static ToolchainPart, state: PartState) -> Self {
        Self { part, state, version: None, path: None, targets: Vec::new(), notes: Vec::new(), unread: None }
    }

    pub(crate) fn unread_part(part: &'static ToolchainPart, error: Diagnostic) -> Self {
        let report = Self::new(part, PartState::Unread).note(error.to_string());
        Self { unread: Some(error), ..report }
    }

    pub(crate) fn with(self, version: Option<String>, path: Option<PathBuf>) -> Self {
        Self { version, path, ..self }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}
