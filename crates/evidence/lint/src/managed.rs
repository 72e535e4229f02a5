//! Vector registers of memory instructions where the program keeps instructions apart itself (SCHED_MODE), and registers of the
//! wave's state, which are read when nothing runs.
//!
//! Invariants: the walk from a producer ends with its block, with another write of SCHED_MODE, and with every wait that may be
//! sufficient, so that nothing is reported that a wait protects.
//!
//! Absent on purpose: results of memory instructions ([`crate::waits`]), and vector instructions of which one writes what
//! another uses: LLVM waits there by the kind of both.

use crate::finding::{HAZARD, LintFinding};
use crate::unit::{BankedInst, LintUnit, sets_sched_mode};
use hotswap_hazards::{BankedInstruction, HazardRule, InstClass, Requirement, rules_for, wait_alu};
use hotswap_isa::{Inst, Name};

/// Checks the rows in every block.
pub(crate) fn check_managed(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    let rows: Vec<&HazardRule> = rules_for(unit.isa()).filter(|row| is_judged(row)).collect();
    if rows.is_empty() {
        return;
    }
    let managed = unit.managed_functions();
    for (number, function) in unit.program.functions.iter().enumerate() {
        let own: Vec<&HazardRule> = rows.iter().copied().filter(|row| managed[number] || !row.managed_only).collect();
        for block in 0..function.block_count() {
            let code = unit.block_code(number, block);
            own.iter().for_each(|row| check_block(unit, &code, row, findings));
        }
    }
}

fn is_judged(row: &HazardRule) -> bool {
    matches!(row.requirement, Requirement::WaitAluCount(_) | Requirement::WaitIdle)
}

fn check_block(unit: &LintUnit<'_>, code: &[BankedInst], row: &HazardRule, findings: &mut Vec<LintFinding>) {
    let isa = unit.isa();
    for (index, (at, inst, _)) in code.iter().enumerate() {
        match row.requirement {
            Requirement::WaitAluCount(field) if row.producer.contains(inst, isa) => {
                if let Some(later) = find_unprotected(unit, &code[index..], row, field) {
                    let what = format!("`s_wait_alu` is missing after `{}` ({})", inst.mnemonic(), row.name);
                    findings.push(LintFinding::at_offset(&HAZARD, unit, later, what));
                }
            }
            Requirement::WaitIdle if row.consumer.contains(inst, isa) && !is_idle_before(&code[..index]) => {
                let what = format!("`s_wait_alu 0` is missing before it ({})", row.name);
                findings.push(LintFinding::at_offset(&HAZARD, unit, *at, what));
            }
            _ => {}
        }
    }
}

/// The first consumer after the producer, with which the code begins, that no wait protects.
fn find_unprotected(unit: &LintUnit<'_>, code: &[BankedInst], row: &HazardRule, field: u16) -> Option<u32> {
    let isa = unit.isa();
    let ((_, producer, banks), rest) = code.split_first()?;
    let placed = BankedInstruction { inst: producer, banks: *banks };
    let mut since = 0;
    for (at, inst, banks) in rest {
        if sets_sched_mode(inst) || is_protected(inst, row, field, since) {
            return None;
        }
        if row.is_about(isa, placed, BankedInstruction { inst, banks: *banks }) {
            return Some(*at);
        }
        if row.producer.contains(inst, isa) {
            since += counted_events(inst);
        }
    }
    None
}

/// The hardware counts an instruction of four words twice (LLVM #196353).
fn counted_events(inst: &Inst) -> u64 {
    const FOUR_WORDS: u8 = 16;
    if inst.len() == FOUR_WORDS { 2 } else { 1 }
}

/// Whether an instruction waits until all producers but the last ones are over.
fn is_protected(inst: &Inst, row: &HazardRule, field: u16, since: u64) -> bool {
    let name = inst.mnemonic();
    if name == "s_wait_alu" {
        let left = inst.raw(Name::Simm16).map(|value| (value & u64::from(field)) >> field.trailing_zeros());
        return left.is_some_and(|left| left <= since);
    }
    row.producer == InstClass::VectorMemory && name.starts_with("s_wait_")
}

/// Whether `s_wait_alu 0` is the last instruction that is more than a hint.
fn is_idle_before(code: &[BankedInst]) -> bool {
    const HINTS: [&str; 2] = ["s_delay_alu", "s_nop"];
    let last = code.iter().rev().map(|(_, inst, _)| inst).find(|inst| !HINTS.contains(&inst.mnemonic()));
    last.is_some_and(|inst| {
        let waits = inst.raw(Name::Simm16).is_some_and(|value| value & u64::from(wait_alu::NOTHING) == 0);
        inst.mnemonic() == "s_wait_alu" && waits
    })
}
