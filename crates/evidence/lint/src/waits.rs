//! Registers that memory instructions write are waited for before they are used.
//!
//! For each register and counter the state holds the number of later operations of that counter issued since the one
//! that writes it: a wait for N leaves the last N outstanding. Scalar memory operations and messages complete out of
//! order, so that only a wait for 0 ends them.
//!
//! Invariants: nothing is outstanding at the start of a function and after calls: LLVM's functions wait for all their
//! loads before they call and return. An operation that was waited for on all paths but one is outstanding.

use crate::finding::{LintFinding, WAIT};
use crate::unit::LintUnit;
use hotswap_isa::bank::{BankRole, VgprBanks};
use hotswap_isa::effects::WaitCounter;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Feature, Flag, Inst, Isa, Name};
use hotswap_program::BlockExit;
use std::collections::BTreeMap;

/// The counters of operations that write registers.
const COUNTERS: [WaitCounter; 5] =
    [WaitCounter::Load, WaitCounter::Sample, WaitCounter::Bvh, WaitCounter::Lds, WaitCounter::Scalar];
const SCALAR: usize = 4;

/// Waits: their counters, and the position of each count in the immediate.
const WAITS: &[(&str, &[(usize, u32)])] = &[
    ("s_wait_loadcnt", &[(0, 0)]),
    ("s_wait_samplecnt", &[(1, 0)]),
    ("s_wait_bvhcnt", &[(2, 0)]),
    ("s_wait_dscnt", &[(3, 0)]),
    ("s_wait_kmcnt", &[(SCALAR, 0)]),
    ("s_wait_loadcnt_dscnt", &[(0, 8), (3, 0)]),
    ("s_wait_storecnt_dscnt", &[(3, 0)]),
];
const COUNT: u64 = 63;

/// A register by file and number, and a counter.
type RegisterCounterKey = (RegFile, u16, u8);

/// The number of operations of its counter after the one that writes a register.
type OutstandingCounts = BTreeMap<RegisterCounterKey, u8>;

pub(crate) fn check_waits(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    if !unit.isa().has(Feature::Gfx12Insts) {
        return;
    }
    for number in 0..unit.program.functions.len() {
        check_function(unit, number, findings);
    }
}

fn check_function(unit: &LintUnit<'_>, number: usize, findings: &mut Vec<LintFinding>) {
    let function = &unit.program.functions[number];
    let mut before: Vec<OutstandingCounts> = vec![OutstandingCounts::new(); function.block_count()];
    let mut work: std::collections::BTreeSet<usize> = (0..function.block_count()).collect();
    while let Some(block) = work.pop_first() {
        let mut state = before[block].clone();
        for (_, inst, banks) in unit.block_code(number, block) {
            pass_instruction(&mut state, &inst, unit.isa(), banks);
        }
        if matches!(function.exit(block), BlockExit::Call) {
            state.clear();
        }
        for next in function.successors(block).iter().map(|next| *next as usize) {
            if join_counts(&mut before[next], &state) {
                work.insert(next);
            }
        }
    }
    for (block, mut state) in before.into_iter().enumerate() {
        for (at, inst, banks) in unit.block_code(number, block) {
            if let Some(reg) = used_outstanding(&state, &inst, unit.isa(), banks) {
                let mut name = String::new();
                let _ = reg.write(&mut name);
                let what = format!("{name} is used before what a memory instruction writes to it was waited for");
                findings.push(LintFinding::at_offset(&WAIT, unit, at, what));
                // One finding for each such register is enough.
                state.retain(|key, _| (key.0, key.1) != (reg.file, reg.index));
            }
            pass_instruction(&mut state, &inst, unit.isa(), banks);
        }
    }
}

/// Where two paths meet, the smaller number of later operations counts.
fn join_counts(state: &mut OutstandingCounts, other: &OutstandingCounts) -> bool {
    let mut changed = false;
    for (key, since) in other {
        let known = state.entry(*key).or_insert(u8::MAX);
        if since < known {
            *known = *since;
            changed = true;
        }
    }
    changed
}

fn raises_counter(inst: &Inst) -> bool {
    const FLAGS: [Flag; 8] =
        [Flag::VmCnt, Flag::LgkmCnt, Flag::Ldsdir, Flag::AsyncCnt, Flag::TensorCnt, Flag::Exp, Flag::Gws, Flag::Ds];
    !inst.is(Flag::Valu) || FLAGS.iter().any(|flag| inst.is(*flag))
}

fn pass_instruction(state: &mut OutstandingCounts, inst: &Inst, isa: Isa, banks: VgprBanks) {
    if !raises_counter(inst) {
        return;
    }
    let counters = inst.wait_counters(isa);
    if !counters.is_empty() {
        let written: RegSet =
            inst.writes(isa).filter_map(|effect| banks.resolve_register(effect.reg, effect.role)).collect();
        for (number, counter) in COUNTERS.into_iter().enumerate().filter(|(_, counter)| counters.has_counter(*counter))
        {
            let _ = counter;
            state.iter_mut().filter(|(key, _)| usize::from(key.2) == number).for_each(|(_, since)| {
                *since = since.saturating_add(1);
            });
            for reg in written.iter().filter(|reg| matches!(reg.file, RegFile::Vgpr | RegFile::Sgpr)) {
                state.insert((reg.file, reg.index, number as u8), 0);
            }
        }
        return;
    }
    if inst.mnemonic() == "s_wait_idle" {
        state.clear();
    }
    let Some((_, waits)) = WAITS.iter().find(|(name, _)| *name == inst.mnemonic()) else { return };
    let value = inst.raw(Name::Simm16).unwrap_or(u64::MAX);
    for (counter, shift) in *waits {
        let left = value >> shift & COUNT;
        state.retain(|key, since| usize::from(key.2) != *counter || !is_wait_over(*since, counter, left));
    }
}

fn is_wait_over(since: u8, counter: &usize, left: u64) -> bool {
    if *counter == SCALAR { left == 0 } else { u64::from(since) >= left }
}

/// A register that an instruction uses while a write of it is outstanding.
fn used_outstanding(state: &OutstandingCounts, inst: &Inst, isa: Isa, banks: VgprBanks) -> Option<Reg> {
    if state.is_empty() {
        return None;
    }
    let counters = inst.wait_counters(isa);
    let mut found = None;
    inst.visit(isa, |effect| {
        let reg = effect.reg();
        if effect.is_none() || found.is_some() || !matches!(reg.file, RegFile::Vgpr | RegFile::Sgpr) {
            return;
        }
        let Some(reg) = banks.resolve_register(reg, effect.role()) else { return };
        for index in reg.index..reg.index + u16::from(reg.count) {
            for (number, counter) in COUNTERS.into_iter().enumerate() {
                // Operations of one counter write one register in order.
                // Of a load into one half, the register is read as its destination, by the same counter as well.
                let is_destination = effect.written() || effect.role() == Some(BankRole::Destination);
                let in_order = is_destination && counters.has_counter(counter) && number != SCALAR;
                if !in_order && state.contains_key(&(reg.file, index, number as u8)) {
                    found = Some(Reg::new(reg.file, index, 1));
                }
            }
        }
    });
    found
}
