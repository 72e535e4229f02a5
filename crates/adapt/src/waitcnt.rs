//! Registers that outstanding memory operations may still write.
//!
//! A load raises a counter and writes its registers when it completes. A wait for 0 of the counter proves completion. A
//! wait for more proves nothing about any register here, because results of different kinds return in any order.
//!
//! Invariants: the outstanding operations are overestimated, never underestimated. At entries of called functions
//! everything is outstanding. After calls of unknown functions nothing is, by convention: LLVM's functions wait for all
//! their loads before they return (`SIInsertWaitcnts`, "all waits must be resolved at call return").

use crate::unit::{Unit, entered_anywhere};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::Counter;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Feature, Flag, Inst, Isa, Name};
use hotswap_program::{Callee, Exit};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;

/// The counters of operations that write registers, in the order of the sets.
const COUNTERS: [Counter; 5] = [Counter::Load, Counter::Sample, Counter::Bvh, Counter::Lds, Counter::Scalar];

/// The outstanding writes at one point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitcntState {
    sets: [RegSet; COUNTERS.len()],
}

/// Waits, with the counters that each covers and the position of each count in the immediate.
const WAITS: &[(&str, &[(usize, u32)])] = &[
    ("s_wait_loadcnt", &[(0, 0)]),
    ("s_wait_samplecnt", &[(1, 0)]),
    ("s_wait_bvhcnt", &[(2, 0)]),
    ("s_wait_dscnt", &[(3, 0)]),
    ("s_wait_kmcnt", &[(4, 0)]),
    ("s_wait_loadcnt_dscnt", &[(0, 8), (3, 0)]),
    ("s_wait_storecnt_dscnt", &[(3, 0)]),
];
const COUNT: u64 = 63;

impl WaitcntState {
    pub(crate) const NOTHING: Self = Self { sets: [RegSet::EMPTY; COUNTERS.len()] };

    /// Scalar memory writes scalar registers and the rest vector registers. Operations that the target has no
    /// instructions for are not outstanding.
    pub(crate) fn everything(isa: Isa) -> Self {
        let images = isa.has(Feature::ImageInsts);
        let set = |counter| match counter {
            Counter::Scalar => RegSet::all_of(RegFile::Sgpr),
            Counter::Sample | Counter::Bvh if !images => RegSet::EMPTY,
            _ => RegSet::all_of(RegFile::Vgpr),
        };
        Self { sets: COUNTERS.map(set) }
    }

    pub(crate) fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.sets.iter_mut().zip(&other.sets) {
            changed |= mine.union_with(theirs);
        }
        changed
    }

    pub(crate) fn add_to(&self, registers: &mut RegSet) {
        for set in &self.sets {
            registers.union_with(set);
        }
    }

    /// The counters of the outstanding operations that may write a part of `reg`.
    pub(crate) fn of(&self, reg: Reg) -> Vec<Counter> {
        let sets = self.sets.iter().zip(COUNTERS).filter(|(set, _)| set.touches(reg));
        sets.map(|(_, counter)| counter).collect()
    }

    /// Updates the state for one more instruction.
    fn pass(&mut self, inst: &Inst, isa: Isa, banks: VgprBanks) {
        // Most instructions only compute: they raise no counter. Waits are scalar instructions.
        if inst.is(Flag::Valu) && !RAISES.iter().any(|flag| inst.is(*flag)) {
            return;
        }
        let counters = inst.counters(isa);
        if !counters.is_empty() {
            let mut written = inst.written_set(isa, banks);
            let unknown: Vec<Reg> = unresolved(inst, isa, banks).collect();
            unknown.into_iter().for_each(|reg| written.insert(reg));
            for (set, counter) in self.sets.iter_mut().zip(COUNTERS) {
                if counters.has(counter) {
                    set.union_with(&written);
                }
            }
            return;
        }
        if inst.mnemonic() == "s_wait_idle" {
            *self = Self::NOTHING;
        }
        let Some((_, waits)) = WAITS.iter().find(|(name, _)| *name == inst.mnemonic()) else { return };
        let value = inst.raw(Name::Simm16).unwrap_or(u64::MAX);
        for (set, shift) in *waits {
            if value >> shift & COUNT == 0 {
                self.sets[*set] = RegSet::EMPTY;
            }
        }
    }
}

/// Every instruction that raises a memory counter has one of these flags.
const RAISES: [Flag; 8] =
    [Flag::VmCnt, Flag::LgkmCnt, Flag::Ldsdir, Flag::AsyncCnt, Flag::TensorCnt, Flag::Exp, Flag::Gws, Flag::Ds];

/// Registers written in an unknown bank, once for each bank.
fn unresolved(inst: &Inst, isa: Isa, banks: VgprBanks) -> impl Iterator<Item = Reg> {
    let unknown = inst.writes(isa).filter(move |effect| banks.resolve(effect.reg, effect.role).is_none());
    unknown.flat_map(|effect| (0..4).map(move |bank| Reg { index: effect.reg.index + 256 * bank, ..effect.reg }))
}

/// The outstanding writes at the start of each block of a function.
#[derive(Debug, Clone)]
pub(crate) struct WaitcntStates {
    blocks: Vec<WaitcntState>,
}

impl WaitcntStates {
    pub(crate) fn of(unit: &Unit<'_>, function: usize) -> Self {
        Self::solve(unit, function, unit.returns(), &unit.callers().flight(unit, function)).0
    }

    fn at_block(&self, block: usize) -> Option<WaitcntState> {
        self.blocks.get(block).cloned()
    }

    /// The outstanding writes before the last instruction of a block.
    pub(crate) fn before_last(&self, unit: &Unit<'_>, function: usize, block: usize) -> WaitcntState {
        let known = self.at_block(block);
        let mut flight = known.unwrap_or_else(|| WaitcntState::everything(unit.isa()));
        through(unit, function, block, &mut flight);
        flight
    }

    /// Solves the function with `called` outstanding at its entries. Also returns what is outstanding when it returns.
    fn solve(unit: &Unit<'_>, number: usize, returns: &Returns, called: &WaitcntState) -> (Self, WaitcntState) {
        let function = &unit.program.functions[number];
        let everything = WaitcntState::everything(unit.isa());
        if entered_anywhere(function).is_some() {
            return (Self { blocks: vec![everything.clone(); function.block_count()] }, everything);
        }
        let mut blocks = vec![WaitcntState::NOTHING; function.block_count()];
        for entry in function.entries.iter().filter(|entry| !entry.is_kernel()) {
            if let Some(block) = function.block_at(entry.offset) {
                blocks[block] = called.clone();
            }
        }
        let mut returned = WaitcntState::NOTHING;
        let mut work: BTreeSet<usize> = (0..blocks.len()).collect();
        while let Some(block) = work.pop_first() {
            let mut flight = blocks[block].clone();
            through(unit, number, block, &mut flight);
            match function.exit(block) {
                Exit::Call => {
                    let call = function.call_at(function.block(block).last);
                    let left = match call.map(|call| call.callee) {
                        Some(Callee::Function { function, .. }) => returns.behind(function, &flight),
                        Some(Callee::Outside(_) | Callee::Unknown) => Some(WaitcntState::NOTHING),
                        None => None,
                    };
                    flight = left.unwrap_or_else(|| everything.clone());
                }
                Exit::Return => drop(returned.join(&flight)),
                Exit::Tail | Exit::Unknown => returned = everything.clone(),
                Exit::Table if function.leaves(block) => returned = everything.clone(),
                _ => {}
            }
            for next in function.successors(block) {
                if blocks[next as usize].join(&flight) {
                    work.insert(next as usize);
                }
            }
        }
        (Self { blocks }, returned)
    }
}

/// The outstanding writes at offsets of one function. Queries within a block are cheapest in ascending order.
pub(crate) struct OutstandingWrites<'u, 'a> {
    unit: &'u Unit<'a>,
    number: usize,
    flights: OnceCell<WaitcntStates>,
    last: RefCell<Option<Passed>>,
}

/// The state in a block, up to an offset.
struct Passed {
    block: usize,
    at: u32,
    banks: VgprBanks,
    flight: WaitcntState,
}

impl<'u, 'a> OutstandingWrites<'u, 'a> {
    pub(crate) fn new(unit: &'u Unit<'a>, number: usize) -> Self {
        Self { unit, number, flights: OnceCell::new(), last: RefCell::new(None) }
    }

    /// The state before the instruction at an offset, or `None` if it is in no block.
    pub(crate) fn before(&self, offset: u32) -> Option<WaitcntState> {
        let function = &self.unit.program.functions[self.number];
        let block = function.block_at(offset)?;
        let mut last = self.last.borrow_mut();
        let known = last.take().filter(|last| last.block == block && last.at <= offset);
        let mut passed = match known {
            Some(passed) => passed,
            None => {
                let flights = self.flights.get_or_init(|| WaitcntStates::of(self.unit, self.number));
                let banks = self.unit.banks.at_block(self.number, block);
                Passed { block, at: function.block(block).start, banks, flight: flights.at_block(block)? }
            }
        };
        while passed.at < offset {
            let Some(inst) = self.unit.program.decode(passed.at) else { break };
            passed.flight.pass(&inst, self.unit.isa(), passed.banks);
            passed.banks = passed.banks.after(&inst, self.unit.isa());
            passed.at += u32::from(inst.len());
        }
        let flight = passed.flight.clone();
        *last = Some(passed);
        Some(flight)
    }
}

fn through(unit: &Unit<'_>, number: usize, block: usize, flight: &mut WaitcntState) {
    let line = unit.program.functions[number].block(block);
    let mut banks = unit.banks.at_block(number, block);
    let mut at = line.start;
    while at < line.end {
        let Some(inst) = unit.program.decode(at) else { break };
        flight.pass(&inst, unit.isa(), banks);
        banks = banks.after(&inst, unit.isa());
        at += u32::from(inst.len());
    }
}

/// The outstanding writes that a function leaves.
#[derive(Debug, Clone)]
struct Left {
    /// Those of its own operations.
    own: WaitcntState,
    /// The counters for which it does not wait on every path: operations outstanding at its entry still are.
    passes: [bool; COUNTERS.len()],
}

/// The outstanding writes of functions when they return.
#[derive(Debug, Clone, Default)]
pub(crate) struct Returns {
    functions: Vec<Option<Box<Left>>>,
}

impl Returns {
    /// Summaries of every called function, callees first. Nothing is known of mutually recursive functions.
    pub(crate) fn of(unit: &Unit<'_>) -> Self {
        let mut returns = Self { functions: vec![None; unit.program.functions.len()] };
        // A register that has no other meaning here shows whether entry state reaches the exit.
        let mut sample = WaitcntState::NOTHING;
        sample.sets.iter_mut().for_each(|set| set.insert(MARK));
        for group in unit.program.bottom_up() {
            let [number] = group[..] else { continue };
            let number = number as usize;
            if unit.program.callers(number).next().is_some() && !calls_itself(unit, number) {
                let own = WaitcntStates::solve(unit, number, &returns, &WaitcntState::NOTHING).1;
                let with = WaitcntStates::solve(unit, number, &returns, &sample).1;
                let passes = std::array::from_fn(|set| with.sets[set].touches(MARK));
                returns.functions[number] = Some(Box::new(Left { own, passes }));
            }
        }
        returns
    }

    /// The state after a call of a function with `before` outstanding.
    fn behind(&self, number: u32, before: &WaitcntState) -> Option<WaitcntState> {
        let left = self.functions.get(number as usize)?.as_ref()?;
        let mut flight = left.own.clone();
        for (set, (before, passes)) in flight.sets.iter_mut().zip(before.sets.iter().zip(left.passes)) {
            if passes {
                set.union_with(before);
            }
        }
        Some(flight)
    }
}

/// No memory instruction writes it.
const MARK: Reg = Reg::special(Special::Scc, 1);

fn calls_itself(unit: &Unit<'_>, number: usize) -> bool {
    unit.program.callers(number).any(|(caller, _)| caller == number)
}
