//! Liveness of one function, to a fixed point.

use super::set::{LAST, LiveSet, REST, RowLayout, VECTORS, WORDS};
use super::step::Stepper;
use super::summary::Summaries;
use crate::analysis::banks::BankMap;
use crate::bits::DwordSet;
use crate::block::BlockExit;
use crate::calls::CallSite;
use crate::dataflow::{self, Dataflow, WorkList};
use crate::function::Function;
use crate::program::Program;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Feature, Inst};

/// The live registers at the points of a function.
#[derive(Debug, Clone)]
pub struct Liveness {
    function: usize,
    layout: RowLayout,
    /// The registers that are live at the start of each block.
    rows: Vec<u64>,
    /// The registers that are live when the function returns.
    returned: LiveSet,
    /// Number of block visits.
    visits: usize,
}

impl Liveness {
    /// The liveness of a function whose callers may need everything when it returns.
    #[must_use]
    pub fn of(program: &Program<'_>, function: usize, summaries: &Summaries, banks: &BankMap) -> Self {
        LivenessSolver::new(program, function, summaries, banks, LiveSet::EVERYTHING).solve_liveness()
    }

    /// The liveness of a function whose callers need `returned` when it returns.
    #[must_use]
    pub fn with_live_at_return(
        program: &Program<'_>,
        function: usize,
        summaries: &Summaries,
        banks: &BankMap,
        returned: &LiveSet,
    ) -> Self {
        LivenessSolver::returning(program, function, summaries, banks, returned).solve_liveness()
    }

    /// The registers that are live at the start of a block.
    #[must_use]
    pub fn at_block(&self, block: usize) -> Option<LiveSet> {
        let length = self.layout.len();
        self.rows.get(block * length..(block + 1) * length).map(|row| self.layout.load_row(row))
    }

    /// Number of block visits until nothing changed.
    #[must_use]
    pub fn visit_count(&self) -> usize {
        self.visits
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.rows.capacity() * 8
    }

    pub(super) fn at_entry(&self, function: &Function, offset: u32) -> Option<LiveSet> {
        self.at_block(function.block_at(offset)?)
    }

    /// The registers that are live before the instruction at an offset, and after it; `None` where no instruction
    /// of the function begins.
    #[must_use]
    pub fn live_around(
        &self,
        program: &Program<'_>,
        summaries: &Summaries,
        banks: &BankMap,
        offset: u32,
    ) -> Option<(LiveSet, LiveSet)> {
        let function = program.functions.get(self.function)?;
        let block = function.block_at(offset).filter(|_| function.is_instruction(offset))?;
        let around = self.around_all(program, summaries, banks, block, &[offset]).pop()?;
        Some((around.before, around.behind))
    }

    /// The same for several instructions of one block, whose offsets ascend; each result with its offset,
    /// for offsets of instructions.
    #[must_use]
    pub fn around_all(
        &self,
        program: &Program<'_>,
        summaries: &Summaries,
        banks: &BankMap,
        block: usize,
        offsets: &[u32],
    ) -> Vec<LiveAround> {
        let mut solver =
            LivenessSolver::with_layout(program, self.function, summaries, banks, self.returned, self.layout);
        let mut after = solver.live_after_block(block, &self.rows);
        let (mut left, mut found) = (offsets, Vec::with_capacity(offsets.len()));
        solver.walk_back(block, &mut after, |at, live, before| {
            while let Some((_, rest)) = left.split_last().filter(|(last, _)| **last > at) {
                left = rest;
            }
            if left.last() != Some(&at) {
                return;
            }
            match found.last_mut() {
                Some(LiveAround { before: found, .. }) if before => *found = *live,
                _ => found.push(LiveAround { offset: at, before: *live, behind: *live }),
            }
        });
        found.reverse();
        found
    }
}

/// The registers live around an instruction.
#[derive(Debug, Clone, Copy)]
pub struct LiveAround {
    pub offset: u32,
    pub before: LiveSet,
    pub behind: LiveSet,
}

/// An instruction of a block.
struct BlockInst {
    at: u32,
    inst: Inst,
    /// The bank mode in force.
    banks: VgprBanks,
}

pub(super) struct LivenessSolver<'p, 'a> {
    program: &'p Program<'a>,
    number: usize,
    function: &'p Function,
    summaries: &'p Summaries,
    banks: &'p BankMap,
    returned: LiveSet,
    layout: RowLayout,
    stepper: Stepper<'p>,
    /// The instructions of a block.
    line: Vec<BlockInst>,
}

impl<'p, 'a> LivenessSolver<'p, 'a> {
    pub(super) fn new(
        program: &'p Program<'a>,
        number: usize,
        summaries: &'p Summaries,
        banks: &'p BankMap,
        returned: LiveSet,
    ) -> Self {
        let layout = RowLayout::of(&touched_words(program, number, summaries, banks, &returned));
        Self::with_layout(program, number, summaries, banks, returned, layout)
    }

    /// Includes words for registers live at returns: a missing word must not mean that nothing is live.
    fn returning(
        program: &'p Program<'a>,
        number: usize,
        summaries: &'p Summaries,
        banks: &'p BankMap,
        returned: &LiveSet,
    ) -> Self {
        let mut words = touched_words(program, number, summaries, banks, returned);
        if returned.words[LAST] & REST == 0 {
            words.iter_mut().zip(&returned.words).for_each(|(word, live)| *word |= live);
        }
        let layout = RowLayout::of(&words);
        Self::with_layout(program, number, summaries, banks, *returned, layout)
    }

    /// Uses rows of all registers, for values live at returns in some lanes only.
    pub(super) fn with_full_rows(
        program: &'p Program<'a>,
        number: usize,
        summaries: &'p Summaries,
        banks: &'p BankMap,
        returned: LiveSet,
    ) -> Self {
        Self::with_layout(program, number, summaries, banks, returned, RowLayout::of(&[u64::MAX; WORDS]))
    }

    fn with_layout(
        program: &'p Program<'a>,
        number: usize,
        summaries: &'p Summaries,
        banks: &'p BankMap,
        returned: LiveSet,
        layout: RowLayout,
    ) -> Self {
        let function = &program.functions[number];
        let stepper = Stepper::new(program.isa_of(number), &program.ops, function.indexed);
        Self { program, number, function, summaries, banks, returned, layout, stepper, line: Vec::new() }
    }

    pub(super) fn solve_liveness(mut self) -> Liveness {
        let function = self.function;
        let mut order = function.reverse_postorder();
        order.reverse();
        let predecessors = function.predecessors();
        let (count, length) = (function.block_count(), self.layout.len());
        let (rows, transfers) = (vec![0; count * length], Transfers::new(count, length));
        let mut problem = LivenessDataflow { solver: &mut self, rows, transfers };
        let visits = dataflow::solve(
            &mut problem,
            |block| predecessors.of_block(block).iter().copied(),
            WorkList::in_order(order),
        );
        let rows = problem.rows;
        Liveness { function: self.number, layout: self.layout, rows, returned: self.returned, visits }
    }

    /// Adds the set live before a block to its row, from the set live after it. Returns whether the row changed.
    ///
    /// A block that leaves EXEC alone removes single bits and adds others, so its code is read once.
    fn visit_block(&mut self, block: usize, mut live: LiveSet, transfers: &mut Transfers, row: &mut [u64]) -> bool {
        let line = self.function.block(block);
        if line.exit == BlockExit::Call {
            live = self.before_callee(line.last, &live);
        }
        let range = block * self.layout.len()..(block + 1) * self.layout.len();
        if transfers.known.get(block) {
            return self.layout.merge_through(row, &live, &transfers.passes[range.clone()], &transfers.needs[range]);
        }
        if transfers.mixed.get(block) || block >= transfers.rooms {
            self.read_block(block);
            for BlockInst { inst, banks, .. } in self.line.iter().rev() {
                self.stepper.step_back(inst, *banks, [&mut live]);
            }
            return self.layout.merge_into_row(row, &live);
        }
        let (mut most, mut least, mut mixes) = (LiveSet::EVERYTHING, LiveSet::NOTHING, false);
        self.read_block(block);
        for BlockInst { inst, banks, .. } in self.line.iter().rev() {
            mixes |= self.stepper.step_back(inst, *banks, [&mut live, &mut most, &mut least]);
        }
        if mixes {
            transfers.mixed.set_bit(block);
        } else {
            transfers.known.set_bit(block);
            self.layout.store_row(&most, &mut transfers.passes[range.clone()]);
            self.layout.store_row(&least, &mut transfers.needs[range]);
        }
        self.layout.merge_into_row(row, &live)
    }

    /// The registers that are live after a block.
    fn live_after_block(&self, block: usize, rows: &[u64]) -> LiveSet {
        let length = self.layout.len();
        let exit = self.function.exit(block);
        let mut live = match exit {
            BlockExit::Return => self.returned,
            _ if self.function.is_lost(block) => LiveSet::EVERYTHING,
            BlockExit::Tail => self.behind_tail(self.function.block(block).last),
            _ => LiveSet::NOTHING,
        };
        for to in self.function.successors(block) {
            let to = to as usize;
            self.layout.join_row(&rows[to * length..(to + 1) * length], &mut live);
        }
        live
    }

    fn behind_tail(&self, last: u32) -> LiveSet {
        let tails = self.function.calls.iter().filter(|call| call.offset == last && call.is_tail());
        let mut live = LiveSet::NOTHING;
        for call in tails {
            live.union_with(&self.summaries.before_call(call, &self.returned));
        }
        live
    }

    /// Reads the instructions of a block.
    fn read_block(&mut self, block: usize) {
        let line = self.function.block(block);
        let threads = !self.banks.is_plain(self.number);
        let mut banks = if threads { self.banks.at_block(self.number, block) } else { VgprBanks::ENTRY };
        self.line.clear();
        let source = &self.program.source;
        // The bytes after the block are included, so that its last instructions are read in one step.
        let isa = source.isa_at(line.start);
        for (at, inst) in isa.walk(source.bytes.get(line.start as usize..).unwrap_or_default()) {
            let (Ok(inst), true) = (inst, line.start + (at as u32) < line.end) else { break };
            self.line.push(BlockInst { at: line.start + at as u32, inst, banks });
            if threads {
                banks = banks.mode_after(&inst, isa);
            }
        }
    }

    /// Walks from the end of a block to its start; `each` sees every instruction twice: with the set live after it,
    /// then with the set live before it.
    fn walk_back(&mut self, block: usize, live: &mut LiveSet, mut each: impl FnMut(u32, &LiveSet, bool)) {
        let line = self.function.block(block);
        self.read_block(block);
        let instructions = std::mem::take(&mut self.line);
        for BlockInst { at, inst, banks } in instructions.iter().rev() {
            each(*at, live, false);
            if *at == line.last && line.exit == BlockExit::Call {
                *live = self.before_callee(line.last, live);
            }
            self.stepper.step_back(inst, *banks, [&mut *live]);
            each(*at, live, true);
        }
        self.line = instructions;
    }

    fn before_callee(&self, offset: u32, after: &LiveSet) -> LiveSet {
        self.function.call_at(offset).map_or(LiveSet::EVERYTHING, |call| self.summaries.before_call(call, after))
    }
}

/// The backward problem: a block takes the rows of its successors, and its own row has changed or not.
struct LivenessDataflow<'s, 'p, 'a> {
    solver: &'s mut LivenessSolver<'p, 'a>,
    rows: Vec<u64>,
    transfers: Transfers,
}

impl Dataflow for LivenessDataflow<'_, '_, '_> {
    type Flow = ();

    fn transfer(&mut self, block: usize) -> Option<()> {
        let length = self.solver.layout.len();
        let live = self.solver.live_after_block(block, &self.rows);
        let row = &mut self.rows[block * length..(block + 1) * length];
        self.solver.visit_block(block, live, &mut self.transfers, row).then_some(())
    }

    fn meet(&mut self, _: usize, (): &()) -> bool {
        true
    }
}

/// The known effects of blocks on the set live after them: bits that pass through, and bits that are added.
struct Transfers {
    passes: Vec<u64>,
    needs: Vec<u64>,
    known: DwordSet,
    /// Blocks that change EXEC, where bits of one kind become others.
    mixed: DwordSet,
    /// Blocks with this number and higher ones lack a room.
    rooms: usize,
}

impl Transfers {
    /// Words of each kind; a function with more than ten thousand blocks reads some of them more than once.
    const MOST: usize = 1 << 19;

    fn new(blocks: usize, length: usize) -> Self {
        let rooms = blocks.min(Self::MOST / length.max(1));
        Self {
            passes: zeroed_live_rows(rooms, length),
            needs: zeroed_live_rows(rooms, length),
            known: DwordSet::new(blocks),
            mixed: DwordSet::new(blocks),
            rooms,
        }
    }
}

fn zeroed_live_rows(rooms: usize, length: usize) -> Vec<u64> {
    vec![0; rooms * length]
}

/// Words of registers that a function or its callees may touch.
fn touched_words(
    program: &Program<'_>,
    number: usize,
    summaries: &Summaries,
    banks: &BankMap,
    returned: &LiveSet,
) -> [u64; WORDS] {
    let (function, isa) = (&program.functions[number], program.isa_of(number));
    let mut words = [0; WORDS];
    match banks.is_plain(number) {
        true => add_touched_words(&(0..256).map(|index| Reg::new(RegFile::Vgpr, index, 1)).collect(), &mut words),
        false => add_touched_words(&RegSet::all_of(RegFile::Vgpr), &mut words),
    }
    if isa.has(Feature::MaiInsts) {
        add_touched_words(&RegSet::all_of(RegFile::Agpr), &mut words);
    }
    // Scalar registers alias one another, and instructions with an index name fewer registers than they touch.
    words[2 * VECTORS..].fill(u64::MAX);
    if function.indexed {
        words[..VECTORS].fill(u64::MAX);
    }
    let fills = may_need_everything(function, summaries, returned);
    for known in function.calls.iter().filter_map(|call| summaries.of_callee(call)) {
        // Where only named registers can be live, a callee that changes EXEC brings in no other registers.
        match fills {
            true => (0..VECTORS).filter(|word| known.touches_word(*word)).for_each(|word| words[word] = u64::MAX),
            false => words.iter_mut().zip(&known.always.words).for_each(|(word, live)| *word |= live),
        }
    }
    words
}

fn add_touched_words(set: &RegSet, words: &mut [u64; 44]) {
    for (number, word) in set.words().iter().enumerate().take(VECTORS + 4) {
        words[if number < VECTORS { number } else { number + VECTORS }] |= word;
    }
}

/// Whether every register may be live at some point of a function.
fn may_need_everything(function: &Function, summaries: &Summaries, returned: &LiveSet) -> bool {
    let (rest, leaves) = (|live: &LiveSet| live.words[LAST] & REST != 0, |exit: BlockExit| function.has_exit(exit));
    leaves(BlockExit::Unknown)
        || function.strays
        || rest(returned) && (leaves(BlockExit::Return) || leaves(BlockExit::Tail))
        || leaves(BlockExit::Tail) && !function.calls.iter().any(CallSite::is_tail)
        || function
            .calls
            .iter()
            .any(|call: &CallSite| summaries.of_callee(call).is_none_or(|known| rest(&known.always)))
}
