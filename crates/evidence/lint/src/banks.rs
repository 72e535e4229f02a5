//! The bank mode of vector registers: the previous mode stated by `s_set_vgpr_msb` is the one in force, the hardware
//! does not drop it, and called functions return in mode 0.

use crate::finding::{BANK_MODE, LintFinding};
use crate::unit::LintUnit;
use hotswap_isa::Feature;
use hotswap_isa::bank::previous_mode;
use hotswap_program::BlockExit;

pub(crate) fn check_banks(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    if !unit.isa().has(Feature::N1024AddressableVgprs) {
        return;
    }
    for (number, function) in unit.program.functions.iter().enumerate() {
        if !function.sets_banks() {
            continue;
        }
        unit.each_instruction(number, |block, at, inst, banks| {
            if let Some(said) = previous_mode(inst) {
                let wrong = banks.mode().filter(|mode| *mode != said);
                let what = wrong.map(|mode| format!("the mode before is {mode:#x}, and {said:#x} is stated"));
                findings.extend(what.map(|what| LintFinding::at_offset(&BANK_MODE, unit, at, what)));
                if banks.mode_after(inst, unit.isa()).mode().is_none() {
                    let what = "directly after a write of MODE the hardware may drop it";
                    findings.push(LintFinding::at_offset(&BANK_MODE, unit, at, what));
                }
            }
            let leaves = matches!(function.exit(block), BlockExit::Return | BlockExit::Tail | BlockExit::Call);
            if leaves && function.block(block).last == at && banks.mode().is_some_and(|mode| mode != 0) {
                let what = format!("a function is left in mode {:#x}", banks.mode().unwrap_or(0));
                findings.push(LintFinding::at_offset(&BANK_MODE, unit, at, what));
            }
        });
    }
}
