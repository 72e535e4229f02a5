//! Answers along a block: a cursor remembers where the last query was, so that a block is walked once for all its
//! offsets, as long as these are queried in ascending order.
//!
//! Invariants: the answers are those of the analysis itself, in any order of queries.

use super::banks::BankMap;
use super::liveness::{LiveAround, LiveSet};
use super::section::{FunctionLiveness, SectionProgram};
use hotswap_isa::bank::VgprBanks;
use std::cell::{OnceCell, RefCell};

/// A state that was computed along one block, up to an offset.
#[derive(Debug, Clone)]
pub struct BlockCursor<S>(Option<CursorState<S>>);

/// The state at the offset of the last query, and the block that has it.
#[derive(Debug, Clone)]
struct CursorState<S> {
    block: usize,
    at: u32,
    state: S,
}

impl<S> Default for BlockCursor<S> {
    fn default() -> Self {
        Self(None)
    }
}

impl<S> BlockCursor<S> {
    /// The state at an offset of a block. It is advanced from the last query's, if that was before in the same block,
    /// else from `begin`: the start of the block with its state. `advance` moves a state from one offset to another,
    /// and returns where it is then.
    pub fn advance_to(
        &mut self,
        (block, offset): (usize, u32),
        begin: impl FnOnce() -> (u32, S),
        advance: impl FnOnce(u32, &mut S) -> u32,
    ) -> &mut S {
        let known = self.0.take().filter(|known| known.block == block && known.at <= offset);
        let (mut at, mut state) = known.map_or_else(begin, |known| (known.at, known.state));
        if at < offset {
            at = advance(at, &mut state);
        }
        &mut self.0.insert(CursorState { block, at, state }).state
    }

    /// The state of the last query.
    pub fn last_state(&self) -> Option<&S> {
        self.0.as_ref().map(|known| &known.state)
    }
}

/// The bank mode before offsets of one function: the answers of [`BankMap::before`].
pub struct BankCursor<'u, 'a> {
    section: &'u SectionProgram<'a>,
    function: usize,
    cursor: RefCell<BlockCursor<VgprBanks>>,
}

impl<'u, 'a> BankCursor<'u, 'a> {
    /// A cursor in that function.
    pub fn new(section: &'u SectionProgram<'a>, function: usize) -> Self {
        Self { section, function, cursor: RefCell::default() }
    }

    /// The mode before an instruction, or `None` if the instruction does not exist.
    pub fn mode_before(&self, offset: u32) -> Option<VgprBanks> {
        let SectionProgram { program, banks, .. } = self.section;
        let function = &program.functions[self.function];
        if !(function.start..function.end).contains(&offset) {
            return banks.mode_before(program, offset);
        }
        let block = function.block_at(offset).filter(|_| function.is_instruction(offset))?;
        let mut cursor = self.cursor.borrow_mut();
        let state = cursor.advance_to(
            (block, offset),
            || (function.block(block).start, banks.at_block(self.function, block)),
            |at, state| {
                *state = BankMap::mode_along(program, function, at..offset, *state);
                offset
            },
        );
        Some(*state)
    }
}

/// The answers for one block.
struct BlockAnswers {
    block: usize,
    lives: Vec<LiveAround>,
}

impl BlockAnswers {
    fn find(&self, offset: u32) -> Option<(LiveSet, LiveSet)> {
        let found = self.lives.binary_search_by_key(&offset, |live| live.offset).ok()?;
        self.lives.get(found).map(|live| (live.before, live.behind))
    }
}

/// The registers live around offsets of one function: the answers of [`Liveness::around`]. All offsets of a block that
/// are likely to be queried are answered at once, because liveness comes from the block's end.
pub struct LivenessCursor<'u, 'a> {
    section: &'u SectionProgram<'a>,
    function: usize,
    /// The offsets that are likely to be queried, in ascending order.
    places: Vec<u32>,
    liveness: OnceCell<FunctionLiveness>,
    last: RefCell<BlockAnswers>,
}

impl<'u, 'a> LivenessCursor<'u, 'a> {
    /// A cursor in that function; `places` are the offsets that are likely to be queried, in ascending order.
    pub fn new(section: &'u SectionProgram<'a>, function: usize, places: Vec<u32>) -> Self {
        Self {
            section,
            function,
            places,
            liveness: OnceCell::new(),
            last: RefCell::new(BlockAnswers { block: usize::MAX, lives: Vec::new() }),
        }
    }

    /// The registers live before and after the instruction at an offset; everything if it does not exist.
    pub fn live_around(&self, offset: u32) -> (LiveSet, LiveSet) {
        self.find_live(offset).unwrap_or((LiveSet::EVERYTHING, LiveSet::EVERYTHING))
    }

    /// Whether an answer has relied on the calling convention.
    pub fn trusts_convention(&self) -> bool {
        self.liveness.get().is_some_and(|known| known.trusts_convention)
    }

    fn find_live(&self, offset: u32) -> Option<(LiveSet, LiveSet)> {
        let FunctionLiveness { liveness, .. } =
            self.liveness.get_or_init(|| self.section.function_liveness(self.function));
        let SectionProgram { program, banks, .. } = self.section;
        let function = program.functions.get(self.function)?;
        let block = function.block_at(offset)?;
        let mut last = self.last.borrow_mut();
        if last.block == block
            && let Some(found) = last.find(offset)
        {
            return Some(found);
        }
        let line = function.block(block);
        let first = self.places.partition_point(|place| *place < line.start);
        let count = self.places[first..].partition_point(|place| *place < line.end);
        let own = &self.places[first..first + count];
        let offsets = if own.binary_search(&offset).is_ok() { own } else { &[offset] };
        let lives = liveness.around_all(program, self.section.summaries(), banks, block, offsets);
        *last = BlockAnswers { block, lives };
        last.find(offset)
    }
}
