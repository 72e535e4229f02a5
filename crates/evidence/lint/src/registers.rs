//! Kernels are allocated the vector registers that they, and their callees, use.
//!
//! Absent on purpose: scalar registers, of which every wave has all from GFX10 on, and kernels with unknown callees.

use crate::finding::{LintFinding, REGISTERS};
use crate::unit::LintUnit;
use hotswap_isa::reg::RegFile;

pub(crate) fn check_registers(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    let program = &unit.program;
    let highest: Vec<Option<NamedVgpr>> =
        (0..program.functions.len()).map(|number| highest_vgpr(unit, number)).collect();
    for (number, function) in program.functions.iter().enumerate().filter(|(_, function)| function.is_kernel()) {
        let Some(granted) = program.kernel_needs(number).and_then(|needs| needs.vgprs) else { continue };
        let called = program.reachable(number);
        let most = called.iter().filter_map(|called| highest[*called as usize]).max();
        if let Some(NamedVgpr { reg, at }) = most.filter(|most| u32::from(most.reg) >= granted) {
            let what =
                format!("v{reg} is used by `{}`, which is granted {granted} vector registers", program.name(function));
            findings.push(LintFinding::at_offset(&REGISTERS, unit, at, what));
        }
    }
}

/// A vector register, and the offset of an instruction that names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NamedVgpr {
    reg: u16,
    at: u32,
}

/// The highest vector register that a function names, at the last offset with it.
fn highest_vgpr(unit: &LintUnit<'_>, number: usize) -> Option<NamedVgpr> {
    let mut highest = None;
    unit.each_instruction(number, |_, at, inst, banks| {
        for effect in inst.effects(unit.isa()).filter(|effect| effect.reg.file == RegFile::Vgpr) {
            let reg = banks.resolve_register(effect.reg, effect.role);
            let last = reg.map(|reg| NamedVgpr { reg: reg.index + u16::from(reg.count) - 1, at });
            highest = highest.max(last);
        }
    });
    highest
}
