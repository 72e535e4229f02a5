//! What the source's text says about the targets of one command, and how it travels between the tools.
//!
//! The wrapper has the source and asks it; the tools that put the fat binary together have the code objects and need the
//! answer: which code object a target is derived from, or that it was compiled. The findings travel in an environment
//! variable, one line for each target:
//!
//! ```text
//! TARGET STATUS SOURCE [EVIDENCE]
//! gfx1031 compiled - `__amdgcn_processor__` at config_types.hpp:321
//! gfx1032 same gfx1031
//! ```
//!
//! Absent on purpose: asking (the driver wrapper), and the plan itself, whose hash must not depend on the source.

use hotswap_report::{Diagnostic, SourceText, codes};
use std::fmt::Write;

/// What is known about one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFinding {
    /// Processor.
    pub target: String,
    /// What the text says.
    pub status: SourceText,
    /// Processor whose code object the target's is derived from; `None` leaves the choice to the plan.
    pub source: Option<String>,
    /// The place in the text, or why nothing was asked.
    pub evidence: Option<String>,
}

/// What is known about the targets of one command; targets that are not listed were not asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextFindings {
    list: Vec<TextFinding>,
}

impl TextFindings {
    /// Adds a finding.
    pub fn push(&mut self, finding: TextFinding) {
        self.list.push(finding);
    }

    /// Whether nothing was asked.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &TextFinding> {
        self.list.iter()
    }

    /// The finding about a processor.
    pub fn find(&self, target: &str) -> Option<&TextFinding> {
        self.list.iter().find(|finding| finding.target == target)
    }

    /// The one text of these findings.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for finding in &self.list {
            let source = finding.source.as_deref().unwrap_or("-");
            let _ = write!(text, "{} {} {source}", finding.target, finding.status.word());
            if let Some(evidence) = &finding.evidence {
                let _ = write!(text, " {}", evidence.replace(['\n', '\r', '\0'], " "));
            }
            text.push('\n');
        }
        text
    }

    /// Reads what [`TextFindings::to_text`] wrote.
    ///
    /// # Errors
    /// [`codes::INTERNAL`] naming the line: wrapper and tools are installed together.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let list: Option<Vec<TextFinding>> = text.lines().map(parse_line).collect();
        let wrong = || Diagnostic::error(codes::INTERNAL, format!("the findings `{text}` cannot be read"));
        Ok(Self { list: list.ok_or_else(wrong)? })
    }
}

fn parse_line(line: &str) -> Option<TextFinding> {
    let mut words = line.splitn(4, ' ');
    let (target, status, source) = (words.next()?, words.next()?, words.next()?);
    Some(TextFinding {
        target: target.to_owned(),
        status: SourceText::from_word(status)?,
        source: (source != "-").then(|| source.to_owned()),
        evidence: words.next().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_read_back_as_they_were_written() {
        let finding = |target: &str, status, source: Option<&str>, evidence: Option<&str>| TextFinding {
            target: target.to_owned(),
            status,
            source: source.map(str::to_owned),
            evidence: evidence.map(str::to_owned),
        };
        let mut findings = TextFindings::default();
        findings.push(finding("gfx1031", SourceText::Compiled, None, Some("`__gfx1030__` at a b.h:7")));
        findings.push(finding("gfx1032", SourceText::Same, Some("gfx1031"), None));
        assert_eq!(findings.to_text(), "gfx1031 compiled - `__gfx1030__` at a b.h:7\ngfx1032 same gfx1031\n");
        assert_eq!(TextFindings::parse(&findings.to_text()).unwrap(), findings);
        assert_eq!(findings.find("gfx1032").unwrap().source.as_deref(), Some("gfx1031"));
        assert!(TextFindings::parse("").unwrap().is_empty());
        for damaged in ["gfx1031", "gfx1031 maybe -", "gfx1031 same"] {
            assert_eq!(TextFindings::parse(damaged).unwrap_err().code, codes::INTERNAL, "{damaged}");
        }
    }
}
