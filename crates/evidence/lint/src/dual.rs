//! Dual instructions whose first half computes with 64 bits do not read the last vector register of a wave in the
//! second half.
//!
//! Absent on purpose: kernels with unknown callees, as for registers.

use crate::finding::{HAZARD, LintFinding};
use crate::unit::LintUnit;
use hotswap_hazards::{HazardRule, Requirement, rules_for};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::bank_role;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Inst, Isa, Name, OperandValue};
use std::collections::BTreeSet;

/// Checks every function against the kernels that reach it.
pub(crate) fn check(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    let program = &unit.program;
    for row in rules_for(unit.isa()).filter(|row| row.requirement == Requirement::Never) {
        let mut last = vec![BTreeSet::new(); program.functions.len()];
        for number in (0..program.functions.len()).filter(|number| program.functions[*number].is_kernel()) {
            let Some(granted) = program.kernel_needs(number).and_then(|needs| needs.vgprs) else { continue };
            for reached in program.reachable(number) {
                last[reached as usize].insert(granted.saturating_sub(1));
            }
        }
        last.iter().enumerate().for_each(|(number, last)| check_function(unit, number, (row, last), findings));
    }
}

fn check_function(
    unit: &LintUnit<'_>,
    number: usize,
    (row, last): (&HazardRule, &BTreeSet<u32>),
    findings: &mut Vec<LintFinding>,
) {
    unit.each_instruction(number, |_, at, inst, banks| {
        if !row.producer.contains(inst, unit.isa()) {
            return;
        }
        let sources = second_sources(inst, unit.isa(), banks);
        if let Some(reg) = sources.into_iter().find(|reg| (reg.start..reg.end).any(|one| last.contains(&one))) {
            let what = format!("the second half reads v{}, the last register of a wave ({})", reg.end - 1, row.name);
            findings.push(LintFinding::at_offset(&HAZARD, unit, at, what));
        }
    });
}

/// The vector registers that the second half reads.
fn second_sources(inst: &Inst, isa: Isa, banks: VgprBanks) -> Vec<std::ops::Range<u32>> {
    let numbered = inst.entry().slots().iter().enumerate();
    let sources = numbered.filter(|(_, slot)| matches!(slot.name, Name::Src0Y | Name::Vsrc1Y | Name::Vsrc2Y));
    let resolved = sources.filter_map(|(number, slot)| match inst.operand(isa, slot.name) {
        Some(OperandValue::Reg(reg)) if reg.file == RegFile::Vgpr => {
            banks.resolve_register(reg, bank_role(inst.entry(), number as u8))
        }
        _ => None,
    });
    resolved.map(|Reg { index, count, .. }| u32::from(index)..u32::from(index) + u32::from(count)).collect()
}
