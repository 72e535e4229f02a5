//! The rules, one table, and their findings.

use crate::unit::LintUnit;
use hotswap_report::{Diagnostic, DiagnosticLocation, codes};

/// A rule of `hotswap lint` or `hotswap verify --against`.
#[derive(Debug, PartialEq, Eq)]
pub struct LintRule {
    /// The name in reports and on the command line, which later versions keep.
    pub id: &'static str,
    /// Used by `verify --against` only: it needs the original.
    pub needs_original: bool,
    /// The requirement, one sentence without a final stop.
    pub summary: &'static str,
}

macro_rules! rules {
    ($($name:ident = $id:literal, $original:literal, $summary:literal;)*) => {
        $(#[doc = $summary] pub(crate) static $name: LintRule = LintRule { id: $id, needs_original: $original, summary: $summary };)*
        pub static RULES: &[&LintRule] = &[$(&$name),*];
    };
}

#[rustfmt::skip]
rules! {
    ENCODING = "encoding", false, "the target has the instruction, in the form that it has";
    CONTROL_FLOW = "control-flow", false, "branches lead to instructions of their function, and every path can be decoded";
    BANK_MODE = "bank-mode", false, "s_set_vgpr_msb says the mode that was in force before, is not dropped by the hardware, and functions are left in mode 0";
    MULTICAST_MASK = "multicast-mask", false, "M0 or the tensor descriptor has a multicast mask of 0";
    MATRIX_DISTANCE = "matrix-distance", false, "enough vector instructions separate a matrix instruction and those that use its registers";
    MODE_DISTANCE = "mode-distance", false, "two v_nop precede a write of MODE that follows vector instructions";
    HAZARD = "hazard", false, "producer and consumer of a hazard keep their distance, or what is in flight is waited for";
    WAIT = "wait", false, "a register that a memory instruction writes is not used before its counter was waited for";
    CLAUSE = "clause", false, "a clause holds instructions of one kind of memory, and for gfx1250-strict of one scope";
    REGISTERS = "registers", false, "kernels are granted the registers that their code uses";
    DESCRIPTOR = "descriptor", false, "kernel descriptors and metadata agree";
    CERTIFICATE = "certificate", true, "the certificate fits both files";
    UNCHANGED = "unchanged", true, "instructions that the certificate does not list are the same in both files";
    TARGET = "target", true, "branches, computed addresses and words with addresses lead where they led";
    ALIGNMENT = "alignment", true, "accesses to LDS at two addresses that stay are aligned to their elements";
    REPLACEMENT = "replacement", true, "the replacement of an instruction does the same as the instruction";
    SCRATCH = "scratch", true, "new code overwrites nothing that is needed later";
    FILE = "file", true, "symbols, relocations, data, descriptors, metadata and call frames are the same but for what moved";
}

/// Something that a rule objects to, or that could not be proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    pub rule: &'static LintRule,
    pub section: String,
    pub(crate) section_number: usize,
    /// The function or kernel with the instruction; `None` for findings about a file.
    pub function: Option<String>,
    /// Offset in the section.
    pub offset: Option<u32>,
    /// Mnemonic of the instruction.
    pub mnemonic: Option<String>,
    pub reason: String,
    /// `file:line`, where the file has line tables.
    pub line: Option<String>,
}

impl LintFinding {
    /// A finding at an instruction of a section.
    pub(crate) fn at_offset(
        rule: &'static LintRule,
        unit: &LintUnit<'_>,
        offset: u32,
        reason: impl Into<String>,
    ) -> Self {
        let program = &unit.program;
        Self {
            rule,
            section: unit.name.clone(),
            section_number: unit.number,
            function: program.function_at(offset).map(|(_, function)| program.name(function)),
            offset: Some(offset),
            mnemonic: program.decode(offset).map(|inst| inst.mnemonic().to_owned()),
            reason: reason.into(),
            line: None,
        }
    }

    /// A finding for the file as a whole.
    pub(crate) fn of_file(rule: &'static LintRule, reason: impl Into<String>) -> Self {
        Self {
            rule,
            section: String::new(),
            section_number: 0,
            function: None,
            offset: None,
            mnemonic: None,
            reason: reason.into(),
            line: None,
        }
    }

    /// The same as a diagnostic.
    #[must_use]
    pub fn to_diagnostic(&self) -> Diagnostic {
        let code = if self.rule.needs_original { codes::NOT_PROVEN } else { codes::LINT };
        let line = self.line.as_ref().map_or(String::new(), |line| format!(" ({line})"));
        let place = DiagnosticLocation {
            entry: (!self.section.is_empty()).then(|| self.section.clone()),
            kernel: self.function.clone(),
            offset: self.offset.map(u64::from),
            mnemonic: self.mnemonic.clone(),
            ..DiagnosticLocation::default()
        };
        Diagnostic { place, ..Diagnostic::error(code, format!("{} [{}]{line}", self.reason, self.rule.id)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_names_of_their_own() {
        let mut names: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
    }
}
