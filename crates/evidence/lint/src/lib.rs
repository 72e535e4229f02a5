//! Judges machine code for gfx1250 and its steppings: a code object alone ([`lint`]), or a rewritten one against its
//! original, with the certificate that it carries ([`against`]).
//!
//! Invariants: nothing here is shared with the code generator except the decoder, the program model and the hazard
//! table, which is data. Anything that cannot be proven is a finding, never a pass. Findings are in the order of the
//! code, on every machine.
//!
//! Absent on purpose: containers and files, repairs, and numerics of matrix instructions (the equivalence of sums is
//! assumed and listed in `docs/evidence/verification.md`).

mod against;
mod banks;
mod callers;
mod distances;
mod dual;
mod encodings;
mod finding;
mod judged;
mod managed;
mod masks;
mod matrix;
mod register_halves;
mod registers;
mod rejected;
mod returned;
mod unit;
mod wait_queues;
mod waits;

pub use against::{Proof, RELEASES, ReleaseRule, ReleasedBytes, ReleasedPart, compare_with_original, released_bytes};
pub use finding::{LintFinding, LintRule, RULES};
pub use judged::{RowJudgment, RuleJudgment, row_judgments, rule_judgments};
pub use rejected::{RejectedForm, rejected_forms};

use hotswap_code_object::CodeObject;
use hotswap_code_object::SourceLines;
use hotswap_report::Diagnostic;
use unit::LintUnit;

/// The judgment of one code object.
#[derive(Debug)]
pub struct LintReport {
    /// Faults by the rules of its target.
    pub findings: Vec<LintFinding>,
    /// Instructions that a version of LLVM rejects.
    pub rejected: Vec<RejectedForm>,
}

/// Judges one code object by the rules of its own target.
///
/// # Errors
/// Files that cannot be read as code objects, and targets whose instructions are not known.
pub fn lint_object(data: &[u8]) -> Result<Vec<LintFinding>, Diagnostic> {
    Ok(report_object(data)?.findings)
}

/// The same with the instructions that a version of LLVM rejects.
///
/// # Errors
/// Files and targets that [`lint_object`] refuses.
pub fn report_object(data: &[u8]) -> Result<LintReport, Diagnostic> {
    let object = CodeObject::parse(data)?;
    let (mut findings, mut rejected) = (Vec::new(), Vec::new());
    for unit in LintUnit::units_of_object(&object)? {
        encodings::check_encodings(&unit, &mut findings);
        banks::check_banks(&unit, &mut findings);
        masks::check_masks(&unit, &mut findings);
        matrix::check_hazards(&unit, &mut findings);
        distances::check_distances(&unit, &mut findings);
        managed::check_managed(&unit, &mut findings);
        waits::check_waits(&unit, &mut findings);
        dual::check(&unit, &mut findings);
        registers::check_registers(&unit, &mut findings);
        rejected::add_rejected_forms(&unit, &mut rejected);
    }
    if let Err(error) = object.check_descriptors() {
        findings.push(LintFinding::of_file(&finding::DESCRIPTOR, error.what));
    }
    sort_findings(data, &mut findings);
    Ok(LintReport { findings, rejected })
}

/// Puts findings in the order of the code, each with its source line where the file has one.
fn sort_findings(data: &[u8], findings: &mut [LintFinding]) {
    findings.sort_by(|a, b| (a.section_number, a.offset, a.rule.id).cmp(&(b.section_number, b.offset, b.rule.id)));
    if findings.iter().any(|finding| finding.offset.is_some()) {
        let lines = SourceLines::read(data);
        for finding in findings {
            finding.line = finding.offset.and_then(|offset| lines.line_at(finding.section_number, u64::from(offset)));
        }
    }
}
