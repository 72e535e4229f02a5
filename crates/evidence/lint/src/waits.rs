//! Registers that memory instructions write are waited for before they are used.
//!
//! For each register and queue ([`crate::wait_queues`]) the state holds the number of later operations of that queue issued since
//! the one that writes it: a wait for N leaves the last N outstanding. Scalar memory operations and messages complete out of
//! order, so that only a wait for 0 ends them.
//!
//! Invariants: nothing is outstanding at the start of a function and after calls: LLVM's functions wait for all their
//! loads before they call and return. Where paths meet, an operation is outstanding before GFX12.5 if it is on every path, from
//! then on if it is on one ([`PathJoin`]).
//!
//! Absent on purpose: registers with a name (VCC, M0), halves of registers but in loads and stores ([`crate::register_halves`]), and
//! loads, samples and ray intersections that overwrite each other's results before GFX12, where one counter has all of them.

use crate::finding::{LintFinding, WAIT};
use crate::register_halves::RegisterPart;
use crate::unit::LintUnit;
use crate::wait_queues::{OperationQueue, counter_waits, operation_queues};
use hotswap_isa::bank::{BankRole, VgprBanks};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Feature, Flag, Inst, Isa, Name, OperandValue};
use hotswap_program::{BlockExit, Function};
use std::collections::{BTreeMap, BTreeSet};

/// A register by file and number, a queue, and the part of the register that the operation writes.
type RegisterQueueKey = (RegFile, u16, OperationQueue, RegisterPart);

/// The number of operations of its queue after the one that writes a register.
type OutstandingCounts = BTreeMap<RegisterQueueKey, u8>;

pub(crate) fn check_waits(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    for number in 0..unit.program.functions.len() {
        check_function(unit, number, findings);
    }
}

fn check_function(unit: &LintUnit<'_>, number: usize, findings: &mut Vec<LintFinding>) {
    for (block, mut state) in states_before_blocks(unit, number).into_iter().enumerate() {
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

/// The state before each block of a function. Blocks that no path from an entry leads to begin with nothing outstanding.
fn states_before_blocks(unit: &LintUnit<'_>, number: usize) -> Vec<OutstandingCounts> {
    let function = &unit.program.functions[number];
    let mut before: Vec<Option<OutstandingCounts>> = vec![None; function.block_count()];
    let mut work = first_blocks(function);
    while !work.is_empty() {
        work.iter().for_each(|block| before[*block] = Some(OutstandingCounts::new()));
        follow_paths(unit, number, &mut before, work);
        work = before.iter().position(Option::is_none).into_iter().collect();
    }
    before.into_iter().flatten().collect()
}

/// Carries the states of blocks to all that paths from them lead to.
fn follow_paths(
    unit: &LintUnit<'_>,
    number: usize,
    before: &mut [Option<OutstandingCounts>],
    mut work: BTreeSet<usize>,
) {
    let function = &unit.program.functions[number];
    let join = if unit.isa().has(Feature::Gfx1250Insts) { PathJoin::AnyPath } else { PathJoin::EveryPath };
    while let Some(block) = work.pop_first() {
        let mut state = before[block].clone().unwrap_or_default();
        for (_, inst, banks) in unit.block_code(number, block) {
            pass_instruction(&mut state, &inst, unit.isa(), banks);
        }
        if matches!(function.exit(block), BlockExit::Call) {
            state.clear();
        }
        for next in function.successors(block).iter().map(|next| *next as usize) {
            if join.add_path(&mut before[next], &state) {
                work.insert(next);
            }
        }
    }
}

/// The blocks at entries, and those that no edge leads to.
fn first_blocks(function: &Function) -> BTreeSet<usize> {
    let predecessors = function.predecessors();
    let entries = function.entries.iter().filter_map(|entry| function.block_at(entry.offset));
    let mut first: BTreeSet<usize> = entries.collect();
    first.extend((0..function.block_count()).filter(|block| predecessors.of_block(*block).is_empty()));
    first
}

/// The operations that are outstanding where paths meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathJoin {
    /// Those of any path, with the smallest number of later operations.
    AnyPath,
    /// Those of every path, with the largest number: kernels that are written by hand have paths which no execution takes.
    EveryPath,
}

impl PathJoin {
    /// Whether a path changes the state where it arrives.
    fn add_path(self, known: &mut Option<OutstandingCounts>, path: &OutstandingCounts) -> bool {
        let Some(known) = known else {
            *known = Some(path.clone());
            return true;
        };
        match self {
            Self::AnyPath => add_outstanding(known, path),
            Self::EveryPath => keep_common(known, path),
        }
    }
}

fn add_outstanding(known: &mut OutstandingCounts, path: &OutstandingCounts) -> bool {
    let mut is_changed = false;
    for (key, since) in path {
        let least = known.entry(*key).or_insert(u8::MAX);
        is_changed |= since < least;
        *least = *since.min(least);
    }
    is_changed
}

fn keep_common(known: &mut OutstandingCounts, path: &OutstandingCounts) -> bool {
    let mut is_changed = false;
    known.retain(|key, most| {
        let Some(since) = path.get(key) else {
            is_changed = true;
            return false;
        };
        is_changed |= since > most;
        *most = *since.max(most);
        true
    });
    is_changed
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
    let queues = operation_queues(inst, isa);
    if !queues.is_empty() {
        let written: RegSet =
            inst.writes(isa).filter_map(|effect| banks.resolve_register(effect.reg, effect.role)).collect();
        let part = RegisterPart::loaded_by(inst);
        for queue in queues {
            state.iter_mut().filter(|(key, _)| key.2 == queue).for_each(|(_, since)| {
                *since = since.saturating_add(1);
            });
            if let Some(largest) = queue.largest_count(isa) {
                state.retain(|key, since| key.2 != queue || *since < largest);
            }
            for reg in written.iter().filter(|reg| is_followed(*reg)) {
                state.insert((reg.file, reg.index, queue, part), 0);
            }
        }
        return;
    }
    if inst.mnemonic() == "s_wait_idle" {
        state.clear();
    }
    for wait in counter_waits(inst, isa) {
        state.retain(|key, since| !wait.ends_operation(key.2, *since));
    }
}

const fn is_followed(reg: Reg) -> bool {
    matches!(reg.file, RegFile::Vgpr | RegFile::Agpr | RegFile::Sgpr)
}

/// How many dwords of a register an instruction accesses in any case. Before GFX10 an image instruction does not say how many
/// addresses it has: its effects are the most that there can be, its operand is the least.
fn certain_count(inst: &Inst, isa: Isa, reg: Reg, slot: Option<u8>) -> u16 {
    let slots = inst.entry().slots();
    let is_address = slot.and_then(|slot| slots.get(usize::from(slot))).is_some_and(|slot| slot.name == Name::Vaddr);
    let has_size = !inst.is(Flag::Mimg) || inst.entry().slot(Name::Dim).is_some();
    let least = match inst.operand(isa, Name::Vaddr) {
        Some(OperandValue::Reg(address)) if is_address && !has_size => address.count,
        _ => reg.count,
    };
    u16::from(least.min(reg.count))
}

/// A register that an instruction uses while a write of it is outstanding.
fn used_outstanding(state: &OutstandingCounts, inst: &Inst, isa: Isa, banks: VgprBanks) -> Option<Reg> {
    if state.is_empty() {
        return None;
    }
    let own = operation_queues(inst, isa);
    let mut found = None;
    inst.visit(isa, |effect| {
        let reg = effect.reg();
        if effect.is_none() || found.is_some() || !is_followed(reg) {
            return;
        }
        let Some(reg) = banks.resolve_register(reg, effect.role()) else { return };
        // Operations of one queue write one register in order.
        // Of a load into one half, the register is read as its destination, by the same queue as well.
        let is_destination = effect.written() || effect.role() == Some(BankRole::Destination);
        let part = if is_destination { RegisterPart::Whole } else { RegisterPart::read_by(inst, isa, effect.reg()) };
        for index in reg.index..reg.index + certain_count(inst, isa, reg, effect.slot()) {
            let first = (reg.file, index, OperationQueue::Load, RegisterPart::Whole);
            let last = (reg.file, index, OperationQueue::FlatLds, RegisterPart::Upper);
            let mut outstanding = state.range(first..=last).map(|(key, _)| key);
            if outstanding.any(|key| {
                let is_in_turn = is_destination && own.contains(&key.2) && key.2.is_in_order();
                !is_in_turn && part.overlaps_part(key.3)
            }) {
                found = Some(Reg::new(reg.file, index, 1));
            }
        }
    });
    found
}
