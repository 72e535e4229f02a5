//! The findings about the source's text for the targets of one command, and their transport between the tools.
//!
//! The wrapper has the source and examines it. The tools that assemble the fat binary have the code objects and need
//! the result: the code object that a target is derived from, or the fact that it was compiled. The findings are passed
//! in an environment variable, one line for each target:
//!
//! ```text
//! TARGET STATUS SOURCE [EVIDENCE]
//! gfx1031 compiled - `__amdgcn_processor__` at config_types.hpp:321
//! gfx1032 same gfx1031
//! ```
//!
//! Absent on purpose: examining the text (the driver wrapper), and the plan itself, whose hash must not depend on the
//! source.

use hotswap_report::{Diagnostic, SourceText, codes};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The finding about one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFinding {
    pub target: String,
    /// Whether the text is the same.
    pub status: SourceText,
    /// Processor whose code object the target's is derived from; `None` leaves the choice to the plan.
    pub source: Option<String>,
    /// The place in the text, or the reason why it was not examined.
    pub evidence: Option<String>,
}

/// The findings about the targets of one command; targets that are not listed were not examined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextFindings {
    list: Vec<TextFinding>,
}

impl TextFindings {
    pub fn push(&mut self, finding: TextFinding) {
        self.list.push(finding);
    }

    /// Adds a finding, replacing the one about the same target.
    pub fn set(&mut self, finding: TextFinding) {
        self.list.retain(|old| old.target != finding.target);
        self.list.push(finding);
    }

    /// Whether no target was examined.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All findings, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &TextFinding> {
        self.list.iter()
    }

    /// The finding about a processor.
    pub fn find(&self, target: &str) -> Option<&TextFinding> {
        self.list.iter().find(|finding| finding.target == target)
    }

    /// The canonical text of these findings.
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

    /// Parses the output of [`TextFindings::to_text`].
    ///
    /// # Errors
    /// [`codes::INTERNAL`] naming the line: wrapper and tools are installed together.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let list: Option<Vec<TextFinding>> = text.lines().map(parse_line).collect();
        Ok(Self { list: list.ok_or_else(|| unreadable_findings_error(text))? })
    }
}

fn unreadable_findings_error(text: &str) -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, format!("the findings `{text}` cannot be read"))
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

/// The targets for which the text of a relocatable unit is that of another target, which the unit has bitcode for.
///
/// It is stored in the unit's object: as a string of the image in LLVM's OffloadBinary, or (old offload driver) in a
/// section of its own. Its text is `TARGET=SOURCE+TARGET=SOURCE`; commas separate the strings of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextMark(BTreeMap<String, String>);

impl TextMark {
    /// Key of the image's string.
    pub const KEY: &'static str = "hotswap-text";
    /// Name of the section; host linkers leave it out (`SHF_EXCLUDE`).
    pub const SECTION: &'static str = ".hotswap.text";

    /// The mark that follows from the findings of the unit's compilation; empty where nothing is the same.
    pub fn of_findings(findings: &TextFindings) -> Self {
        let same = findings.iter().filter(|finding| finding.status == SourceText::Same);
        Self(same.filter_map(|finding| Some((finding.target.clone(), finding.source.clone()?))).collect())
    }

    /// Reads a mark; invalid parts are ignored, so that nothing is known about them.
    pub fn parse(text: &str) -> Self {
        let pairs = text.trim_end_matches('\0').split('+').filter_map(|pair| pair.split_once('='));
        Self(pairs.map(|(target, source)| (target.to_owned(), source.to_owned())).collect())
    }

    /// The canonical text of this mark.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|(target, source)| format!("{target}={source}")).collect::<Vec<_>>().join("+")
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The processor whose text the target's is.
    pub fn source_of(&self, target: &str) -> Option<&str> {
        self.0.get(target).map(String::as_str)
    }

    /// Targets with their sources.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(target, source)| (target.as_str(), source.as_str()))
    }

    /// Adds the content of another mark.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
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
        let mark = TextMark::of_findings(&findings);
        assert_eq!(mark.to_text(), "gfx1032=gfx1031");
        assert_eq!(TextMark::parse("gfx1032=gfx1031\0"), mark);
        assert_eq!((mark.source_of("gfx1032"), mark.source_of("gfx1031")), (Some("gfx1031"), None));
        assert!(TextMark::parse("damaged").is_empty());
        assert!(TextFindings::parse("").unwrap().is_empty());
        for damaged in ["gfx1031", "gfx1031 maybe -", "gfx1031 same"] {
            assert_eq!(TextFindings::parse(damaged).unwrap_err().code, codes::INTERNAL, "{damaged}");
        }
    }
}
