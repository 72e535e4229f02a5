//! One diagnostic: fact, location, reason, advice; displayed as one line.

use crate::{DiagnosticCode, codes};
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Something worth knowing; the output is as requested.
    Note,
    /// The output is correct, but less than requested.
    Warning,
    /// No output.
    Error,
}

/// The location of a diagnostic, outermost part first. Unknown parts stay empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiagnosticLocation {
    /// The file as the user named it.
    pub file: Option<PathBuf>,
    /// Archive member, section or bundle entry ID.
    pub entry: Option<String>,
    pub kernel: Option<String>,
    /// Byte offset in the innermost part named.
    pub offset: Option<u64>,
    pub mnemonic: Option<String>,
}

/// An error, in the terms of the object that it affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Row of the code table.
    pub code: &'static DiagnosticCode,
    pub severity: Severity,
    /// The particular fact, naming the object.
    pub what: String,
    pub place: DiagnosticLocation,
    /// Advice that is more specific than the code's.
    pub advice: Option<String>,
}

impl Diagnostic {
    /// An error of that code about `what`.
    pub fn error(code: &'static DiagnosticCode, what: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, what: what.into(), place: DiagnosticLocation::default(), advice: None }
    }

    /// A file that cannot be read, in the system's words.
    pub fn cannot_read(file: impl AsRef<Path>, error: impl fmt::Display) -> Self {
        Self::error(codes::CANNOT_READ, error.to_string()).in_file(file)
    }

    /// A file that cannot be written, in the system's words.
    pub fn cannot_write(file: impl AsRef<Path>, error: impl fmt::Display) -> Self {
        Self::error(codes::CANNOT_WRITE, error.to_string()).in_file(file)
    }

    /// A warning of that code about `what`.
    pub fn warning(code: &'static DiagnosticCode, what: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, what) }
    }

    /// Names the file, unless one is named already.
    pub fn in_file(mut self, file: impl AsRef<Path>) -> Self {
        self.place.file.get_or_insert_with(|| file.as_ref().to_owned());
        self
    }

    /// Names the bundle entry, archive member or section, unless one is named already.
    pub fn in_entry(mut self, entry: impl Into<String>) -> Self {
        self.place.entry.get_or_insert_with(|| entry.into());
        self
    }

    /// Names the byte offset, unless one is named already.
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.place.offset.get_or_insert(offset);
        self
    }

    /// Replaces the code's general advice.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The JSON form, the same in every command.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "code": self.code.id,
            "severity": self.severity.to_string(),
            "summary": self.code.summary,
            "what": self.what,
            "file": self.place.file.as_ref().map(|f| f.display().to_string()),
            "entry": self.place.entry,
            "kernel": self.place.kernel,
            "offset": self.place.offset,
            "mnemonic": self.place.mnemonic,
            "advice": self.advice.as_deref().unwrap_or(self.code.advice),
        })
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for DiagnosticLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        for part in [&self.entry, &self.kernel, &self.mnemonic].into_iter().flatten() {
            write!(f, "{part}: ")?;
        }
        self.offset.map_or(Ok(()), |offset| write!(f, "offset {offset:#x}: "))
    }
}

/// `error: [HS0203] FILE: ENTRY: what (summary); advice` — always one line. Names come from files: characters that
/// could move a terminal's cursor are escaped.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = self.advice.as_deref().unwrap_or(self.code.advice);
        let line = format!("{}{}: {}; {}", self.place, self.code.summary, self.what, advice);
        write!(f, "{}: [{}] ", self.severity, self.code.id)?;
        line.chars().try_for_each(|c| match c {
            '\n' => f.write_char(' '),
            c if c.is_control() => write!(f, "{}", c.escape_default()),
            c => f.write_char(c),
        })
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;

    #[test]
    fn a_diagnostic_is_one_line_that_names_the_place_and_the_way_out() {
        let text = Diagnostic::error(codes::MALFORMED, "section table\nleaves the file")
            .in_file("a.hipfb")
            .in_entry("hip-amdgcn-amd-amdhsa--gfx1030")
            .at_offset(0x28)
            .to_string();
        assert_eq!(
            text,
            "error: [HS0302] a.hipfb: hip-amdgcn-amd-amdhsa--gfx1030: offset 0x28: the input is damaged: \
             section table leaves the file; build it again; if another tool reads it, report it"
        );
    }

    #[test]
    fn names_from_files_cannot_move_the_cursor() {
        let text = Diagnostic::error(codes::MALFORMED, "`\x1b[2J` is no target").in_entry("hip\r\u{9b}").to_string();
        assert!(text.contains(r"hip\r\u{9b}: ") && text.contains(r"`\u{1b}[2J`"), "{text}");
        assert!(!text.contains(char::is_control), "{text:?}");
    }
}
