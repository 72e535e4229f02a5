//! The VGPR bank mode of gfx12.5 at the start of every block.
//!
//! Invariants: a role is known only if every path brings the same bank. Nothing is known at the start of a function
//! with unknown callers, or after a call of an unknown callee, unless the caller trusts LLVM's calling convention
//! ([`BankMap::by_convention`]: bank 0 for every role at entries and returns). On other targets everything is bank 0.

use crate::bits::DwordSet;
use crate::block::BlockExit;
use crate::calls::CallDestination;
use crate::dataflow::{self, Dataflow, WorkList};
use crate::function::Function;
use crate::program::Program;
use hotswap_isa::Feature;
use hotswap_isa::bank::VgprBanks;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Minimum functions per task, where most need almost no time.
const MANY: usize = 64;

/// The bank mode at every point of a program.
#[derive(Debug, Clone)]
pub struct BankMap {
    /// For each function the mode at the start of each block; empty where it is that of a kernel's entry.
    blocks: Vec<Vec<VgprBanks>>,
    /// Functions that use the first bank for every role everywhere.
    plain: DwordSet,
}

impl BankMap {
    /// The modes that the code proves. Starts no work on other threads: others may wait for it.
    #[must_use]
    pub fn of(program: &Program<'_>) -> Self {
        if !has_banks(program) {
            return Self::first_bank_everywhere(program);
        }
        let states = BankSolver::new(program, VgprBanks::UNKNOWN).run();
        let mut map = Self::first_bank_everywhere(program);
        map.blocks = states.into_iter().zip(&program.functions).map(|(states, one)| states.block_modes(one)).collect();
        let plain = (0..program.functions.len()).filter(|number| map.keeps_first_bank(program, *number)).collect();
        map.with_plain(plain)
    }

    /// The modes that the code proves if all code outside keeps LLVM's calling convention; functions
    /// are analysed in parallel.
    #[must_use]
    pub fn by_convention(program: &Program<'_>) -> Self {
        if !has_banks(program) {
            return Self::first_bank_everywhere(program);
        }
        let numbers = (0..program.functions.len()).into_par_iter().with_min_len(MANY);
        // If each function keeps the convention assuming that all others do, all of them do.
        let kept: Option<Vec<BankStates>> =
            numbers.clone().map(|number| BankedFunction::by_convention(program, number)).collect();
        let states = kept.unwrap_or_else(|| BankSolver::new(program, VgprBanks::ENTRY).run());
        let states = states.into_par_iter().zip(&program.functions).with_min_len(MANY);
        let mut map = Self::first_bank_everywhere(program);
        map.blocks = states.map(|(states, function)| states.block_modes(function)).collect();
        let plain = numbers.filter(|number| map.keeps_first_bank(program, *number)).collect();
        map.with_plain(plain)
    }

    /// The first bank everywhere.
    fn first_bank_everywhere(program: &Program<'_>) -> Self {
        let count = program.functions.len();
        Self { blocks: vec![Vec::new(); count], plain: DwordSet::with_all_set(count) }
    }

    /// Marks these functions as those that use the first bank everywhere.
    fn with_plain(mut self, numbers: Vec<usize>) -> Self {
        self.plain = DwordSet::new(self.blocks.len());
        for number in numbers {
            self.plain.set_bit(number);
        }
        self
    }

    fn keeps_first_bank(&self, program: &Program<'_>, number: usize) -> bool {
        let function = &program.functions[number];
        if !self.blocks[number].iter().all(is_first_bank) {
            return false;
        }
        let (mut next, mut stays) = (0, true);
        while let Some(offset) = function.modes.get(next).filter(|_| stays) {
            let Some(block) = function.block_at(*offset) else { return false };
            let line = function.block(block);
            apply_instructions(program, function, line.start..line.end, self.at_block(number, block), |banks| {
                stays &= is_first_bank(&banks);
                next += 1;
            });
        }
        stays
    }

    /// The mode at the start of a block.
    #[must_use]
    pub fn at_block(&self, function: usize, block: usize) -> VgprBanks {
        match self.blocks.get(function) {
            Some(states) if !states.is_empty() => states.get(block).copied().unwrap_or(VgprBanks::UNKNOWN),
            _ => VgprBanks::ENTRY,
        }
    }

    /// Whether a function uses the first bank for every role everywhere.
    pub(crate) fn is_plain(&self, function: usize) -> bool {
        self.plain.get(function)
    }

    /// The mode before the instruction at an offset; `None` where no instruction begins.
    #[must_use]
    pub fn mode_before(&self, program: &Program<'_>, offset: u32) -> Option<VgprBanks> {
        let (number, function) = program.function_at(offset)?;
        let block = function.block_at(offset).filter(|_| function.is_instruction(offset))?;
        let code = function.block(block).start..offset;
        Some(Self::mode_along(program, function, code, self.at_block(number, block)))
    }

    /// The mode after instructions of one block, from the one before them.
    #[must_use]
    pub fn mode_along(program: &Program<'_>, function: &Function, code: Range<u32>, banks: VgprBanks) -> VgprBanks {
        apply_instructions(program, function, code, banks, |_| {})
    }
}

fn is_first_bank(banks: &VgprBanks) -> bool {
    banks.mode() == Some(0)
}

/// The mode after some instructions of one block; `each` gets it after each of those that may change it.
fn apply_instructions(
    program: &Program<'_>,
    function: &Function,
    code: Range<u32>,
    mut banks: VgprBanks,
    mut each: impl FnMut(VgprBanks),
) -> VgprBanks {
    let mut at = code.start;
    for offset in function.modes_in(code.start, code.end) {
        let before = if *offset == at { banks } else { banks.after_other() };
        let inst = program.decode(*offset);
        banks = inst.map_or(VgprBanks::UNKNOWN, |inst| before.mode_after(&inst, program.source.isa));
        at = offset + inst.map_or(4, |inst| u32::from(inst.len()));
        each(banks);
    }
    if at == code.end { banks } else { banks.after_other() }
}

fn has_banks(program: &Program<'_>) -> bool {
    program.source.isa.has(Feature::N1024AddressableVgprs)
}

fn has_unknown_jump(function: &Function) -> bool {
    function.problems.iter().any(|problem| problem.reason.is_unknown_jump())
}

/// Whether the mode at its end reaches a caller or unknown code.
fn gives_back(function: &Function) -> bool {
    function.strays || function.has_exit(BlockExit::Return)
}

/// Whether the mode may differ from block to block.
fn has_blocks(function: &Function) -> bool {
    function.banked || !function.calls.is_empty()
}

/// The mode everywhere if some function breaks the convention, or nothing may depend on it.
struct BankSolver<'p, 'a> {
    program: &'p Program<'a>,
    /// The modes after unknown callers and callees.
    outside: VgprBanks,
    states: Vec<BankStates>,
    /// The mode in which each function returns.
    returned: Vec<Option<VgprBanks>>,
    /// Functions with blocks to visit, and these blocks.
    work: BTreeSet<u32>,
    pending: Vec<DwordSet>,
}

/// The known modes of a function's blocks; `None` for a block not reached yet.
#[derive(Debug, Clone)]
enum BankStates {
    /// The function neither sets modes nor calls: the mode is the same everywhere.
    Same(Option<VgprBanks>),
    Blocks(Vec<Option<VgprBanks>>),
}

impl BankStates {
    /// The mode at the start of each block; none where it is that of a kernel's entry.
    fn block_modes(self, function: &Function) -> Vec<VgprBanks> {
        match self {
            // A jump to an unknown address may reach any block of its function.
            _ if has_unknown_jump(function) => vec![VgprBanks::UNKNOWN; function.block_count()],
            Self::Same(state) if known_bank_state(state) == VgprBanks::ENTRY => Vec::new(),
            Self::Same(state) => vec![known_bank_state(state); function.block_count()],
            Self::Blocks(states) if states.iter().all(|state| *state == Some(VgprBanks::ENTRY)) => Vec::new(),
            Self::Blocks(states) => states.into_iter().map(known_bank_state).collect(),
        }
    }

    /// A path reaches a block with this mode. Returns whether less is known than before.
    fn join_at_block(&mut self, block: usize, banks: VgprBanks) -> bool {
        let slot = match self {
            Self::Same(state) => Some(state),
            Self::Blocks(states) => states.get_mut(block),
        };
        let Some(slot) = slot else { return false };
        let joined = slot.map_or(banks, |known| known.join(banks));
        let changed = *slot != Some(joined);
        *slot = Some(joined);
        changed
    }

    fn state_at_block(&self, block: usize) -> Option<VgprBanks> {
        match self {
            Self::Same(state) => *state,
            Self::Blocks(states) => states.get(block).copied().flatten(),
        }
    }
}

fn known_bank_state(state: Option<VgprBanks>) -> VgprBanks {
    state.unwrap_or(VgprBanks::UNKNOWN)
}

impl<'p, 'a> BankSolver<'p, 'a> {
    fn new(program: &'p Program<'a>, outside: VgprBanks) -> Self {
        let functions = &program.functions;
        let states = functions.iter().map(initial_bank_states).collect();
        let (returned, pending) = (vec![None; functions.len()], vec![DwordSet::default(); functions.len()]);
        Self { program, outside, states, returned, work: BTreeSet::new(), pending }
    }

    fn run(mut self) -> Vec<BankStates> {
        let program = self.program;
        for (number, function) in program.functions.iter().enumerate() {
            for entry in &function.entries {
                if entry.is_kernel() {
                    self.enter_block(number, entry.offset, VgprBanks::ENTRY);
                } else if entry.open || program.callers(number).next().is_none() {
                    self.enter_block(number, entry.offset, self.outside);
                }
            }
        }
        while let Some(number) = self.work.pop_first() {
            let number = number as usize;
            let states = std::mem::replace(&mut self.states[number], BankStates::Same(None));
            let mut one = BankedFunction::new(number, states, std::mem::take(&mut self.pending[number]));
            one.visit_pending(program, self.outside, |callee| self.returned[callee as usize]);
            self.states[number] = one.states;
            one.entered
                .into_iter()
                .for_each(|(entry, (callee, banks))| self.enter_block(callee as usize, entry, banks));
            one.returned.into_iter().for_each(|banks| self.give_back(number, banks));
        }
        self.states
    }

    fn enter_block(&mut self, function: usize, offset: u32, banks: VgprBanks) {
        let Some(block) = self.program.functions[function].block_at(offset) else { return };
        if !self.states[function].join_at_block(block, banks) {
            return;
        }
        match &self.states[function] {
            BankStates::Blocks(_) => self.queue_block(function, block),
            BankStates::Same(Some(joined)) if gives_back(&self.program.functions[function]) => {
                self.give_back(function, *joined);
            }
            BankStates::Same(_) => {}
        }
    }

    fn queue_block(&mut self, function: usize, block: usize) {
        let pending = &mut self.pending[function];
        if pending.bytes() == 0 {
            pending.clear_and_resize(self.program.functions[function].block_count());
        }
        pending.set_bit(block);
        self.work.insert(function as u32);
    }

    /// A function returns with this mode: everything after calls of it is visited again.
    fn give_back(&mut self, number: usize, banks: VgprBanks) {
        let joined = self.returned[number].map_or(banks, |known| known.join(banks));
        if self.returned[number] == Some(joined) {
            return;
        }
        self.returned[number] = Some(joined);
        let program = self.program;
        for (caller, site) in program.callers(number) {
            if let Some(block) = program.functions[caller].block_at(site.offset)
                && self.states[caller].state_at_block(block).is_some()
            {
                self.queue_block(caller, block);
            }
        }
    }
}

fn initial_bank_states(function: &Function) -> BankStates {
    match has_blocks(function) {
        true => BankStates::Blocks(vec![None; function.block_count()]),
        false => BankStates::Same(None),
    }
}

/// One function while its blocks are visited.
struct BankedFunction {
    number: usize,
    states: BankStates,
    pending: DwordSet,
    /// The modes with which entries of functions are called, by offset.
    entered: BTreeMap<u32, (u32, VgprBanks)>,
    /// The mode with which it returns, if a return was found.
    returned: Option<VgprBanks>,
    /// Number of the first instruction that may change the mode in the last visited block, or after it.
    mode: usize,
}

impl BankedFunction {
    fn new(number: usize, states: BankStates, pending: DwordSet) -> Self {
        Self { number, states, pending, entered: BTreeMap::new(), returned: None, mode: 0 }
    }

    /// The known modes of a function's blocks if its callers and callees keep the convention; `None` if it does
    /// not keep it itself.
    fn by_convention(program: &Program<'_>, number: usize) -> Option<BankStates> {
        let function = &program.functions[number];
        if !function.banked {
            return Some(BankStates::Same(Some(VgprBanks::ENTRY)));
        }
        let count = function.block_count();
        let mut one = Self::new(number, BankStates::Blocks(vec![None; count]), DwordSet::new(count));
        for block in function.entries.iter().filter_map(|entry| function.block_at(entry.offset)) {
            one.states.join_at_block(block, VgprBanks::ENTRY);
            one.pending.set_bit(block);
        }
        one.visit_pending(program, VgprBanks::ENTRY, |_| Some(VgprBanks::ENTRY));
        let told = one.entered.values().map(|(_, banks)| *banks).chain(one.returned);
        told.into_iter().all(|banks| banks == VgprBanks::ENTRY).then_some(one.states)
    }

    /// Visits the pending blocks; `returned` yields the known mode in which a function returns.
    fn visit_pending(
        &mut self,
        program: &Program<'_>,
        outside: VgprBanks,
        returned: impl Fn(u32) -> Option<VgprBanks>,
    ) {
        let function = &program.functions[self.number];
        let work = WorkList::of(std::mem::take(&mut self.pending));
        let mut problem = BankDataflow { one: self, program, outside, returned };
        dataflow::solve(&mut problem, |block| function.successors(block), work);
    }

    /// The mode after a block, if execution is known to reach that point.
    fn mode_after_block(
        &mut self,
        program: &Program<'_>,
        block: usize,
        outside: VgprBanks,
        returned: impl Fn(u32) -> Option<VgprBanks>,
    ) -> Option<VgprBanks> {
        let (function, entry) = (&program.functions[self.number], self.states.state_at_block(block)?);
        let may_call = matches!(
            function.exit(block),
            BlockExit::Call | BlockExit::Tail | BlockExit::Unknown | BlockExit::Return | BlockExit::Table
        );
        if !may_call && !self.has_modes(function, block) {
            return Some(entry.after_other());
        }
        let line = function.block(block);
        // The mode after a call is decided by its callee.
        let end = if line.exit == BlockExit::Call { line.last } else { line.end };
        let mut banks = apply_instructions(program, function, line.start..end, entry, |_| {});
        let call = may_call.then(|| function.call_at(line.last)).flatten();
        match call.map(|call| (call.callee, call.is_tail())) {
            None => {}
            Some((CallDestination::Function { function: callee, entry }, is_tail)) => {
                let known = self.entered.entry(entry).or_insert((callee, banks));
                known.1 = known.1.join(banks);
                match (is_tail, returned(callee)) {
                    (true, left) => left.into_iter().for_each(|left| self.give_back(left)),
                    // No path continues here before the callee was followed to its end.
                    (false, left) => banks = left?,
                }
            }
            Some((_, true)) => self.give_back(outside),
            Some((_, false)) => banks = outside,
        }
        // A jump by a table that may leave the function may be a return.
        if line.exit == BlockExit::Return || line.exit == BlockExit::Table && function.strays {
            self.give_back(banks);
        }
        Some(banks)
    }

    /// Whether instructions of a block may change the mode. Blocks usually come in order.
    fn has_modes(&mut self, function: &Function, block: usize) -> bool {
        let (start, end) = (function.blocks.block_start(block), function.blocks.end_limit(block, function.end));
        let modes = &function.modes;
        if self.mode.checked_sub(1).and_then(|before| modes.get(before)).is_some_and(|before| *before >= start) {
            self.mode = modes.partition_point(|offset| *offset < start);
        }
        self.mode += modes.get(self.mode..).into_iter().flatten().take_while(|offset| **offset < start).count();
        modes.get(self.mode).is_some_and(|offset| *offset < end)
    }

    fn give_back(&mut self, banks: VgprBanks) {
        self.returned = Some(self.returned.map_or(banks, |known| known.join(banks)));
    }
}

/// The forward problem in one function.
struct BankDataflow<'o, 'p, 'a, R> {
    one: &'o mut BankedFunction,
    program: &'p Program<'a>,
    outside: VgprBanks,
    returned: R,
}

impl<R: Fn(u32) -> Option<VgprBanks>> Dataflow for BankDataflow<'_, '_, '_, R> {
    type Flow = VgprBanks;

    fn transfer(&mut self, block: usize) -> Option<VgprBanks> {
        self.one.mode_after_block(self.program, block, self.outside, &self.returned)
    }

    fn meet(&mut self, block: usize, banks: &VgprBanks) -> bool {
        self.one.states.join_at_block(block, *banks)
    }
}
