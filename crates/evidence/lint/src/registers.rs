//! Kernels are allocated the vector registers that they, and their callees, use.
//!
//! Absent on purpose: scalar registers, of which every wave has all from GFX10 on, and kernels with unknown callees.

use crate::finding::{LintFinding, REGISTERS};
use crate::unit::LintUnit;
use hotswap_isa::reg::RegFile;

pub(crate) fn check_registers(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    let program = &unit.program;
    let highest: Vec<Option<(u16, u32)>> =
        (0..program.functions.len()).map(|number| highest_vgpr(unit, number)).collect();
    for (number, function) in program.functions.iter().enumerate().filter(|(_, function)| function.is_kernel()) {
        let Some(granted) = program.kernel_needs(number).and_then(|needs| needs.vgprs) else { continue };
        let called = program.reachable(number);
        let most = called.iter().filter_map(|called| highest[*called as usize]).max();
        if let Some((reg, at)) = most.filter(|(reg, _)| u32::from(*reg) >= granted) {
            let what =
                format!("v{reg} is used by `{}`, which is granted {granted} vector registers", program.name(function));
            findings.push(LintFinding::at_offset(&REGISTERS, unit, at, what));
        }
    }
}

/// The highest vector register that a function names, and its offset.
fn highest_vgpr(unit: &LintUnit<'_>, number: usize) -> Option<(u16, u32)> {
    let mut highest = None;
    unit.each_instruction(number, |_, at, inst, banks| {
        for effect in inst.effects(unit.isa()).filter(|effect| effect.reg.file == RegFile::Vgpr) {
            let reg = banks.resolve_register(effect.reg, effect.role);
            let last = reg.map(|reg| (reg.index + u16::from(reg.count) - 1, at));
            highest = highest.max(last);
        }
    });
    highest
}
