//! A function: a range of the section, its entries, blocks and edges.

use crate::address::{LostAddress, PcValue};
use crate::bits::DwordSet;
use crate::block::{BasicBlock, BlockExit, PackedBlocks, Predecessors, Successors};
use crate::calls::CallSite;
use crate::problem::AnalysisProblem;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EntryKind {
    Kernel,
    /// The entry of a kernel on hardware that preloads its arguments.
    Preloaded,
    Function,
    /// An address that a word outside of the code holds, or that code computes.
    Address,
    /// The target of a call or a jump from elsewhere.
    Target,
}

/// An offset at which execution may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPoint {
    /// Offset in the section.
    pub offset: u32,
    /// The reason for it; if there are several, the first of them in the order of [`EntryKind`].
    pub kind: EntryKind,
    /// Its callers are not completely known: the address is taken, or other files see the name.
    pub open: bool,
}

impl EntryPoint {
    /// Whether the hardware starts here: a return is impossible, and only what the hardware sets up is live.
    #[must_use]
    pub const fn is_kernel(&self) -> bool {
        matches!(self.kind, EntryKind::Kernel | EntryKind::Preloaded)
    }
}

/// A range of the section whose code belongs together.
#[derive(Debug, Clone)]
pub struct Function {
    /// Offset of its first byte.
    pub start: u32,
    /// Offset after its last byte: the start of the next function.
    pub end: u32,
    /// Number of the mark that names it, in [`CodeSource::marks`](crate::Source::marks).
    pub mark: Option<u32>,
    /// Its entries by offset.
    pub entries: Vec<EntryPoint>,
    pub(crate) blocks: PackedBlocks,
    /// Its calls, and jumps into other functions, by offset.
    pub calls: Vec<CallSite>,
    /// The unknown parts of its control flow, by offset.
    pub problems: Vec<AnalysisProblem>,
    /// Addresses that it computes from the program counter, by offset.
    pub pc_values: Vec<PcValue>,
    /// Get-PCs that only serve prefetching, and the instructions that use their results.
    pub(crate) serving: Vec<u32>,
    /// Offsets at which instructions start.
    pub(crate) starts: DwordSet,
    /// It sets the bank mode.
    pub(crate) banked: bool,
    /// Offsets of the instructions that may set the bank mode.
    pub(crate) modes: Vec<u32>,
    /// It has instructions whose registers are selected by the index mode of gfx9.
    pub(crate) indexed: bool,
    /// The address of one of its instructions, or of another function, is used where it is not tracked.
    pub(crate) escapes: bool,
    /// Jumps by tables may leave it as well.
    pub(crate) strays: bool,
    /// Addresses of code that stay in a register in which they are not tracked any more.
    pub(crate) lost: Vec<LostAddress>,
}

/// A block on the path of a depth-first walk.
struct DepthFirstStep {
    block: u32,
    /// The number of its successors that were visited.
    next: u32,
}

impl Function {
    /// Whether everything is known about its control flow.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether one of its entries is a kernel's.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.entries.iter().any(EntryPoint::is_kernel)
    }

    /// Numbers of the successors of block number `block`, the taken branch first.
    #[must_use]
    pub fn successors(&self, block: usize) -> Successors<'_> {
        self.blocks.block_successors(block)
    }

    /// The block with that number, of [`block_count`](Self::block_count) by offset.
    ///
    /// If the function lacks such a block.
    /// If it does not exist.
    #[inline]
    #[must_use]
    pub fn block(&self, number: usize) -> BasicBlock {
        self.blocks.get(number, &self.starts, (self.start, self.end))
    }

    /// Its blocks by offset.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = BasicBlock> + DoubleEndedIterator {
        (0..self.blocks.len()).map(|number| self.block(number))
    }

    /// The number of its blocks.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// How the block with that number ends.
    ///
    /// If the function lacks such a block.
    /// If it does not exist.
    #[inline]
    #[must_use]
    pub fn exit(&self, block: usize) -> BlockExit {
        self.blocks.exit_of_block(block)
    }

    /// Whether execution may continue after a block, or return there, along paths that are not edges of the function.
    ///
    /// If the function lacks such a block.
    /// If such a block does not exist.
    #[must_use]
    pub fn leaves(&self, block: usize) -> bool {
        match self.exit(block) {
            BlockExit::Call | BlockExit::Return | BlockExit::Tail | BlockExit::Unknown => true,
            BlockExit::Table => self.strays,
            BlockExit::Fall | BlockExit::Branch | BlockExit::Conditional | BlockExit::Jump | BlockExit::End => false,
        }
    }

    /// Whether the values after a block may be read by unknown code: a jump has, or may have, an unknown target.
    pub(crate) fn is_lost(&self, block: usize) -> bool {
        match self.exit(block) {
            BlockExit::Table => self.strays,
            exit => exit == BlockExit::Unknown,
        }
    }

    /// Whether a block ends with the given exit.
    #[must_use]
    pub fn has_exit(&self, exit: BlockExit) -> bool {
        (0..self.blocks.len()).any(|block| self.blocks.exit_of_block(block) == exit)
    }

    /// Number of the block that holds an offset.
    #[must_use]
    pub fn block_at(&self, offset: u32) -> Option<usize> {
        self.blocks.block_before(offset).filter(|number| offset < self.block(*number).end)
    }

    /// Whether an instruction that execution reaches begins at an offset.
    #[must_use]
    pub fn is_instruction(&self, offset: u32) -> bool {
        offset.is_multiple_of(4) && offset >= self.start && self.starts.get((offset - self.start) as usize / 4)
    }

    /// Whether a block begins at an offset: a branch, a return or an entry can only reach such an offset.
    #[must_use]
    pub fn is_block_start(&self, offset: u32) -> bool {
        self.blocks.block_starting_at(offset).is_some()
    }

    /// Offset of the reached instruction before an offset, whatever its successors.
    #[must_use]
    pub fn instruction_before(&self, offset: u32) -> Option<u32> {
        let distance = offset.checked_sub(self.start)?;
        Some(self.start + self.starts.previous_set_bit(distance as usize / 4)? as u32 * 4)
    }

    /// The call or the jump into another function at an offset.
    #[must_use]
    pub fn call_at(&self, offset: u32) -> Option<&CallSite> {
        let found = self.calls.binary_search_by_key(&offset, |call| call.offset).ok()?;
        self.calls.get(found)
    }

    /// Number of its instructions that an entry reaches.
    #[must_use]
    pub fn instruction_count(&self) -> usize {
        self.starts.count()
    }

    /// Whether the instruction at an offset only makes, or uses, addresses for prefetching: a get-PC, a sum, a copy, or
    /// the prefetch. The target of these changes no result.
    #[must_use]
    pub fn serves_fetching(&self, offset: u32) -> bool {
        self.serving.binary_search(&offset).is_ok()
    }

    /// Whether an address in code is used here in a way that is not tracked: any function may
    /// then have unknown callers.
    #[must_use]
    pub fn lets_addresses_escape(&self) -> bool {
        self.escapes
    }

    /// Whether instructions set the bank mode of VGPRs, or may.
    #[must_use]
    pub fn sets_banks(&self) -> bool {
        self.banked
    }

    /// The instructions that may set the bank mode between two offsets.
    pub(crate) fn modes_in(&self, start: u32, end: u32) -> &[u32] {
        let first = self.modes.partition_point(|offset| *offset < start);
        let count = self.modes[first..].partition_point(|offset| *offset < end);
        &self.modes[first..first + count]
    }

    /// Whether registers are selected by an index that is state of the wave.
    #[must_use]
    pub fn uses_index_mode(&self) -> bool {
        self.indexed
    }

    /// Builds the table of the blocks' predecessors.
    #[must_use]
    pub fn predecessors(&self) -> Predecessors {
        self.blocks.predecessors()
    }

    /// Blocks in reverse postorder from the entries; complete, because only reached code has blocks.
    #[must_use]
    pub fn reverse_postorder(&self) -> Vec<u32> {
        let mut seen = DwordSet::new(self.blocks.len());
        let mut order = Vec::with_capacity(self.blocks.len());
        let mut stack: Vec<DepthFirstStep> = Vec::new();
        let entries = self.entries.iter().filter_map(|entry| self.block_at(entry.offset));
        for root in entries.chain(0..self.blocks.len()) {
            if !seen.set_bit(root) {
                continue;
            }
            stack.push(DepthFirstStep { block: root as u32, next: 0 });
            while let Some(DepthFirstStep { block, next }) = stack.last_mut() {
                let successor = self.successors(*block as usize).get(*next as usize).copied();
                *next += 1;
                match successor {
                    Some(to) if seen.set_bit(to as usize) => stack.push(DepthFirstStep { block: to, next: 0 }),
                    Some(_) => {}
                    None => {
                        order.push(*block);
                        stack.pop();
                    }
                }
            }
        }
        order.reverse();
        order
    }

    /// Bytes that it takes in memory, allocations included.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.entries.capacity() * size_of::<EntryPoint>()
            + self.blocks.memory_bytes()
            + self.calls.capacity() * size_of::<CallSite>()
            + self.problems.capacity() * size_of::<AnalysisProblem>()
            + self.pc_values.capacity() * size_of::<PcValue>()
            + self.modes.capacity() * 4
            + self.serving.capacity() * 4
            + self.starts.bytes()
    }
}
