//! Instructions that a newer version of LLVM does not read, although the target's rows have them ([`hotswap_isa::versions`]).
//!
//! They are not findings: an older version accepts the code, and the hardware may execute it. Whoever assembles it again needs to
//! know.
//!
//! Absent on purpose: bytes that no path reaches, as everywhere in this crate.

use crate::unit::LintUnit;
use hotswap_code_object::CodeObject;
use hotswap_isa::versions::{VersionJudgment, version_judgment};
use hotswap_report::Diagnostic;

/// An instruction in a form that one version of LLVM reads and another one rejects.
#[derive(Debug, Clone)]
pub struct RejectedForm {
    /// Name of the section that `offset` counts from.
    pub section: String,
    /// Function or kernel that the instruction belongs to.
    pub function: Option<String>,
    pub offset: u32,
    pub mnemonic: &'static str,
    /// The form with the versions of LLVM.
    pub judgment: &'static VersionJudgment,
}

/// The instructions of a code object that a version of LLVM rejects, in the order of the code.
///
/// # Errors
/// Files that cannot be read as code objects, and targets whose instructions are not known.
pub fn rejected_forms(data: &[u8]) -> Result<Vec<RejectedForm>, Diagnostic> {
    let mut all = Vec::new();
    for unit in LintUnit::units_of_object(&CodeObject::parse(data)?)? {
        add_rejected_forms(&unit, &mut all);
    }
    Ok(all)
}

/// Adds those of a section. Functions may share code, which is listed once.
pub(crate) fn add_rejected_forms(unit: &LintUnit<'_>, all: &mut Vec<RejectedForm>) {
    let mut own: Vec<RejectedForm> = Vec::new();
    for (number, function) in unit.program.functions.iter().enumerate() {
        unit.each_instruction(number, |_, offset, inst, _| {
            own.extend(version_judgment(inst, unit.isa()).map(|judgment| RejectedForm {
                section: unit.name.clone(),
                function: Some(unit.program.name(function)),
                offset,
                mnemonic: inst.mnemonic(),
                judgment,
            }));
        });
    }
    own.sort_by_key(|one| one.offset);
    own.dedup_by_key(|one| one.offset);
    all.append(&mut own);
}
