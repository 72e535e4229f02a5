//! Registers that outstanding memory operations may still write.
//!
//! A load raises a counter and writes its registers when it completes. A wait for 0 of the counter proves completion. A
//! wait for more proves nothing about any register here, because results of different kinds return in any order.
//!
//! Invariants: the outstanding operations are overestimated, never underestimated. At entries of called functions
//! everything is outstanding. After calls of unknown functions nothing is, by convention: LLVM's functions wait for all
//! their loads before they return (`SIInsertWaitcnts`, "all waits must be resolved at call return").

use super::cursor::BlockCursor;
use super::section::SectionProgram;
use crate::block::BlockExit;
use crate::calls::CallDestination;
use crate::dataflow::{self, Dataflow, WorkList};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::WaitCounter;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Feature, Flag, Inst, Isa, Name};
use std::cell::{OnceCell, RefCell};
use std::sync::OnceLock;

/// The counters of operations that write registers, in the order of the sets.
const COUNTERS: [WaitCounter; 5] =
    [WaitCounter::Load, WaitCounter::Sample, WaitCounter::Bvh, WaitCounter::Lds, WaitCounter::Scalar];

/// The outstanding writes at one point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitcntState {
    sets: [RegSet; COUNTERS.len()],
}

/// A count in the immediate of a wait.
struct WaitCount {
    /// Number of the counter in [`COUNTERS`].
    counter: usize,
    /// Lowest bit of the count.
    shift: u32,
}

const fn wait_count(counter: usize, shift: u32) -> WaitCount {
    WaitCount { counter, shift }
}

/// Waits, with the counts that each has.
const WAITS: &[(&str, &[WaitCount])] = &[
    ("s_wait_loadcnt", &[wait_count(0, 0)]),
    ("s_wait_samplecnt", &[wait_count(1, 0)]),
    ("s_wait_bvhcnt", &[wait_count(2, 0)]),
    ("s_wait_dscnt", &[wait_count(3, 0)]),
    ("s_wait_kmcnt", &[wait_count(4, 0)]),
    ("s_wait_loadcnt_dscnt", &[wait_count(0, 8), wait_count(3, 0)]),
    ("s_wait_storecnt_dscnt", &[wait_count(3, 0)]),
];
const COUNT: u64 = 63;

impl WaitcntState {
    pub const NOTHING: Self = Self { sets: [RegSet::EMPTY; COUNTERS.len()] };

    /// Everything may be outstanding. Scalar memory writes scalar registers and the rest vector registers. Operations
    /// that the target lacks instructions for are not outstanding.
    pub fn all_outstanding(isa: Isa) -> Self {
        let images = isa.has(Feature::ImageInsts);
        Self { sets: COUNTERS.map(|one| outstanding_register_set(one, images)) }
    }

    /// Adds the outstanding writes of another path. Returns whether there are more now.
    pub(super) fn join_path(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.sets.iter_mut().zip(&other.sets) {
            changed |= mine.union_with(theirs);
        }
        changed
    }

    /// Adds the registers that may still be written to a set.
    pub fn add_to(&self, registers: &mut RegSet) {
        for set in &self.sets {
            registers.union_with(set);
        }
    }

    /// The counters of the outstanding operations that may write a part of `reg`.
    pub fn counters_of_reg(&self, reg: Reg) -> Vec<WaitCounter> {
        let sets = self.sets.iter().zip(COUNTERS).filter(|(set, _)| set.touches(reg));
        sets.map(|(_, counter)| counter).collect()
    }

    /// Updates the state for one more instruction.
    fn apply_instruction(&mut self, inst: &Inst, isa: Isa, banks: VgprBanks) {
        // Most instructions only compute: they raise no counter. Waits are scalar instructions.
        if inst.is(Flag::Valu) && !RAISES.iter().any(|flag| inst.is(*flag)) {
            return;
        }
        let counters = inst.wait_counters(isa);
        if !counters.is_empty() {
            let mut written = inst.written_set(isa, banks);
            let unknown: Vec<Reg> = unresolved_writes(inst, isa, banks).collect();
            unknown.into_iter().for_each(|reg| written.insert(reg));
            for (set, counter) in self.sets.iter_mut().zip(COUNTERS) {
                if counters.has_counter(counter) {
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
        for WaitCount { counter, shift } in *waits {
            if value >> shift & COUNT == 0 {
                self.sets[*counter] = RegSet::EMPTY;
            }
        }
    }
}

fn outstanding_register_set(counter: WaitCounter, images: bool) -> RegSet {
    match counter {
        WaitCounter::Scalar => RegSet::all_of(RegFile::Sgpr),
        WaitCounter::Sample | WaitCounter::Bvh if !images => RegSet::EMPTY,
        _ => RegSet::all_of(RegFile::Vgpr),
    }
}

/// Every instruction that raises a memory counter has one of these flags.
const RAISES: [Flag; 8] =
    [Flag::VmCnt, Flag::LgkmCnt, Flag::Ldsdir, Flag::AsyncCnt, Flag::TensorCnt, Flag::Exp, Flag::Gws, Flag::Ds];

/// Registers written in an unknown bank, once for each bank.
fn unresolved_writes(inst: &Inst, isa: Isa, banks: VgprBanks) -> impl Iterator<Item = Reg> {
    let unknown = inst.writes(isa).filter(move |effect| banks.resolve_register(effect.reg, effect.role).is_none());
    unknown.flat_map(|effect| (0..4).map(move |bank| Reg { index: effect.reg.index + 256 * bank, ..effect.reg }))
}

/// The outstanding writes at the start of each block of a function.
#[derive(Debug, Clone)]
pub(crate) struct WaitcntStates {
    blocks: Vec<WaitcntState>,
}

/// The solution for a function.
struct SolvedWaits {
    states: WaitcntStates,
    /// The outstanding writes when it returns.
    returned: WaitcntState,
}

/// The forward problem: the outstanding writes at the start of each block.
struct WaitcntProblem<'p, 'a> {
    section: &'p SectionProgram<'a>,
    number: usize,
    returns: &'p Returns,
    blocks: Vec<WaitcntState>,
    /// The outstanding writes when the function returns.
    returned: WaitcntState,
}

impl Dataflow for WaitcntProblem<'_, '_> {
    type Flow = WaitcntState;

    fn transfer(&mut self, block: usize) -> Option<WaitcntState> {
        let function = &self.section.program.functions[self.number];
        let mut state = self.blocks[block].clone();
        apply_block(self.section, self.number, block, &mut state);
        match function.exit(block) {
            BlockExit::Call => {
                let call = function.call_at(function.block(block).last);
                let left = match call.map(|call| call.callee) {
                    Some(CallDestination::Function { function, .. }) => self.returns.state_after_call(function, &state),
                    Some(CallDestination::Outside(_) | CallDestination::Unknown) => Some(WaitcntState::NOTHING),
                    None => None,
                };
                state = left.unwrap_or_else(|| WaitcntState::all_outstanding(self.section.isa()));
            }
            BlockExit::Return => drop(self.returned.join_path(&state)),
            BlockExit::Tail | BlockExit::Unknown => {
                self.returned = WaitcntState::all_outstanding(self.section.isa());
            }
            BlockExit::Table if function.leaves(block) => {
                self.returned = WaitcntState::all_outstanding(self.section.isa());
            }
            _ => {}
        }
        Some(state)
    }

    fn meet(&mut self, block: usize, state: &WaitcntState) -> bool {
        self.blocks[block].join_path(state)
    }
}

impl WaitcntStates {
    fn of(section: &SectionProgram<'_>, function: usize) -> Self {
        Self::solve_function(section, function, section.returns(), &section.called_states().at_entry(section, function))
            .states
    }

    fn at_block(&self, block: usize) -> Option<WaitcntState> {
        self.blocks.get(block).cloned()
    }

    /// The outstanding writes before the last instruction of a block.
    fn before_last(&self, section: &SectionProgram<'_>, function: usize, block: usize) -> WaitcntState {
        let known = self.at_block(block);
        let mut state = known.unwrap_or_else(|| WaitcntState::all_outstanding(section.isa()));
        apply_block(section, function, block, &mut state);
        state
    }

    /// Solves the function with `called` outstanding at its entries.
    fn solve_function(
        section: &SectionProgram<'_>,
        number: usize,
        returns: &Returns,
        called: &WaitcntState,
    ) -> SolvedWaits {
        let function = &section.program.functions[number];
        if function.entered_anywhere().is_some() {
            let everything = WaitcntState::all_outstanding(section.isa());
            let states = Self { blocks: vec![everything.clone(); function.block_count()] };
            return SolvedWaits { states, returned: everything };
        }
        let mut blocks = vec![WaitcntState::NOTHING; function.block_count()];
        for entry in function.entries.iter().filter(|entry| !entry.is_kernel()) {
            if let Some(block) = function.block_at(entry.offset) {
                blocks[block] = called.clone();
            }
        }
        let mut problem = WaitcntProblem { section, number, returns, blocks, returned: WaitcntState::NOTHING };
        dataflow::solve(&mut problem, |block| function.successors(block), WorkList::all(function.block_count()));
        SolvedWaits { states: Self { blocks: problem.blocks }, returned: problem.returned }
    }
}

/// The outstanding writes at offsets of one function.
pub struct OutstandingWrites<'u, 'a> {
    section: &'u SectionProgram<'a>,
    number: usize,
    states: OnceCell<WaitcntStates>,
    cursor: RefCell<BlockCursor<(WaitcntState, VgprBanks)>>,
}

impl<'u, 'a> OutstandingWrites<'u, 'a> {
    /// Those of that function. Queries within a block are cheapest in ascending order.
    pub fn new(section: &'u SectionProgram<'a>, number: usize) -> Self {
        Self { section, number, states: OnceCell::new(), cursor: RefCell::default() }
    }

    /// The state before the instruction at an offset, or `None` if it is in no block.
    pub fn state_before(&self, offset: u32) -> Option<WaitcntState> {
        let (section, number) = (self.section, self.number);
        let function = &section.program.functions[number];
        let block = function.block_at(offset)?;
        let mut cursor = self.cursor.borrow_mut();
        let (state, _) = cursor.advance_to(
            (block, offset),
            || {
                let states = self.states.get_or_init(|| WaitcntStates::of(section, number));
                let state = states.at_block(block).unwrap_or_else(|| WaitcntState::all_outstanding(section.isa()));
                (function.block(block).start, (state, section.banks.at_block(number, block)))
            },
            |mut at, (state, banks)| {
                while at < offset {
                    let Some(inst) = section.program.decode(at) else { break };
                    state.apply_instruction(&inst, section.isa(), *banks);
                    *banks = banks.mode_after(&inst, section.isa());
                    at += u32::from(inst.len());
                }
                at
            },
        );
        Some(state.clone())
    }
}

/// Applies the instructions of a block, as far as they can be decoded.
fn apply_block(section: &SectionProgram<'_>, number: usize, block: usize, state: &mut WaitcntState) {
    section.each_of_block(number, block, |_, inst, banks| state.apply_instruction(inst, section.isa(), banks));
}

/// The outstanding writes when functions are called, computed on demand.
#[derive(Debug)]
pub(crate) struct CalledStates(Vec<OnceLock<Box<WaitcntState>>>);

impl CalledStates {
    pub(super) fn of(section: &SectionProgram<'_>) -> Self {
        Self(section.program.functions.iter().map(|_| OnceLock::new()).collect())
    }

    /// The memory operations that may be outstanding when a function is called.
    fn at_entry(&self, section: &SectionProgram<'_>, number: usize) -> WaitcntState {
        let chains = section.interprocedural().chains();
        if chains.is_recursive(number) || chains.is_too_deep(number) || section.has_unknown_callers(number) {
            return WaitcntState::all_outstanding(section.isa());
        }
        WaitcntState::clone(self.0[number].get_or_init(|| {
            let mut all = WaitcntState::NOTHING;
            for (caller, call) in section.program.callers(number) {
                all.join_path(&match section.program.functions[caller].block_at(call.offset) {
                    Some(block) => WaitcntStates::of(section, caller).before_last(section, caller, block),
                    None => WaitcntState::all_outstanding(section.isa()),
                });
            }
            Box::new(all)
        }))
    }
}

/// The outstanding writes that a function leaves.
#[derive(Debug, Clone)]
struct LeftOutstanding {
    /// Those of its own operations.
    own: WaitcntState,
    /// The counters for which it does not wait on every path: operations outstanding at its entry still are.
    passes: [bool; COUNTERS.len()],
}

/// The outstanding writes of functions when they return.
#[derive(Debug, Clone, Default)]
pub(crate) struct Returns {
    functions: Vec<Option<Box<LeftOutstanding>>>,
}

impl Returns {
    /// Summaries of every called function, callees first. Nothing is known of mutually recursive functions.
    pub(crate) fn of(section: &SectionProgram<'_>) -> Self {
        let mut returns = Self { functions: vec![None; section.program.functions.len()] };
        // A register without any other meaning here shows whether entry state reaches the exit.
        let mut sample = WaitcntState::NOTHING;
        sample.sets.iter_mut().for_each(|set| set.insert(MARK));
        for group in section.program.bottom_up() {
            let [number] = group[..] else { continue };
            let number = number as usize;
            if section.program.callers(number).next().is_some() && !calls_itself(section, number) {
                let own = WaitcntStates::solve_function(section, number, &returns, &WaitcntState::NOTHING).returned;
                let with = WaitcntStates::solve_function(section, number, &returns, &sample).returned;
                let passes = std::array::from_fn(|set| with.sets[set].touches(MARK));
                returns.functions[number] = Some(Box::new(LeftOutstanding { own, passes }));
            }
        }
        returns
    }

    /// The state after a call of a function with `before` outstanding.
    fn state_after_call(&self, number: u32, before: &WaitcntState) -> Option<WaitcntState> {
        let left = self.functions.get(number as usize)?.as_ref()?;
        let mut state = left.own.clone();
        for (set, (before, passes)) in state.sets.iter_mut().zip(before.sets.iter().zip(left.passes)) {
            if passes {
                set.union_with(before);
            }
        }
        Some(state)
    }
}

/// No memory instruction writes it.
const MARK: Reg = Reg::special(Special::Scc, 1);

fn calls_itself(section: &SectionProgram<'_>, number: usize) -> bool {
    section.program.callers(number).any(|(caller, _)| caller == number)
}
