//! A function: a stretch of the section, its entries, blocks and edges.

use crate::bits::Bits;
use crate::block::{Block, Blocks, Exit, Successors};
use crate::calls::CallSite;
use crate::problem::Problem;
use crate::track::{LostAddress, PcValue};

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// A kernel.
    Kernel,
    /// Where a kernel begins on hardware that preloads its arguments.
    Preloaded,
    /// A function symbol.
    Function,
    /// An address that a word outside of the code, or a computation in it, holds.
    Address,
    /// The target of a call or a jump from elsewhere.
    Target,
}

/// Where execution may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Offset in the section.
    pub offset: u32,
    /// Why it is one; if there are several reasons, the first of them in the order of [`EntryKind`].
    pub kind: EntryKind,
    /// Who enters here is not known completely: the address is taken, or other files see the name.
    pub open: bool,
}

impl Entry {
    /// Whether the hardware begins here: no one returns from it, and nothing is live but what it sets up.
    #[must_use]
    pub const fn is_kernel(&self) -> bool {
        matches!(self.kind, EntryKind::Kernel | EntryKind::Preloaded)
    }
}

/// A stretch of the section whose code belongs together.
#[derive(Debug, Clone)]
pub struct Function {
    /// Offset of its first byte.
    pub start: u32,
    /// Offset behind its last byte: where the next function begins.
    pub end: u32,
    /// Number of the mark that names it, in [`Source::marks`](crate::Source::marks).
    pub mark: Option<u32>,
    /// Its entries by offset.
    pub entries: Vec<Entry>,
    pub(crate) blocks: Blocks,
    /// Its calls, and jumps into other functions, by offset.
    pub calls: Vec<CallSite>,
    /// What is not known of it, by offset.
    pub problems: Vec<Problem>,
    /// Addresses that it computes from the program counter, by offset.
    pub pc_values: Vec<PcValue>,
    /// Get-PCs that serve fetching ahead alone, and what works on their results.
    pub(crate) serving: Vec<u32>,
    /// Offsets of instructions.
    pub(crate) starts: Bits,
    /// It sets the bank mode.
    pub(crate) banked: bool,
    /// Offsets of the instructions that may do so.
    pub(crate) modes: Vec<u32>,
    /// It has instructions whose registers the index mode of gfx9 chooses.
    pub(crate) indexed: bool,
    /// The address of one of its instructions, or of another function, goes where it is not followed.
    pub(crate) escapes: bool,
    /// Jumps by tables may lead out of it as well.
    pub(crate) strays: bool,
    /// Addresses of code that stay in a register where they are not followed any further.
    pub(crate) lost: Vec<LostAddress>,
}

impl Function {
    /// Whether everything is known of its control flow.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether one of its entries is a kernel's.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.entries.iter().any(Entry::is_kernel)
    }

    /// Numbers of the blocks that follow block number `block`, the taken branch first.
    #[must_use]
    pub fn successors(&self, block: usize) -> Successors<'_> {
        self.blocks.successors(block)
    }

    /// The block with that number, of [`block_count`](Self::block_count) by offset.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn block(&self, number: usize) -> Block {
        self.blocks.get(number, &self.starts, (self.start, self.end))
    }

    /// Its blocks by offset.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = Block> + DoubleEndedIterator {
        (0..self.blocks.len()).map(|number| self.block(number))
    }

    /// How many blocks it has.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// How the block with that number ends.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn exit(&self, block: usize) -> Exit {
        self.blocks.exit(block)
    }

    /// Whether execution may go on behind a block, or come back there, where the edges of the function do not say.
    ///
    /// # Panics
    /// If there is no such block.
    #[must_use]
    pub fn leaves(&self, block: usize) -> bool {
        match self.exit(block) {
            Exit::Call | Exit::Return | Exit::Tail | Exit::Unknown => true,
            Exit::Table => self.strays,
            Exit::Fall | Exit::Branch | Exit::Conditional | Exit::Jump | Exit::End => false,
        }
    }

    /// Whether nobody knows who gets what is there behind a block: a jump goes on where it is not known, or may do so.
    pub(crate) fn is_lost(&self, block: usize) -> bool {
        match self.exit(block) {
            Exit::Table => self.strays,
            exit => exit == Exit::Unknown,
        }
    }

    /// Whether a block ends in a certain way.
    #[must_use]
    pub fn has_exit(&self, exit: Exit) -> bool {
        (0..self.blocks.len()).any(|block| self.blocks.exit(block) == exit)
    }

    /// Number of the block that holds an offset.
    #[must_use]
    pub fn block_at(&self, offset: u32) -> Option<usize> {
        self.blocks.before(offset).filter(|number| offset < self.block(*number).end)
    }

    /// Whether an instruction that execution reaches begins at an offset.
    #[must_use]
    pub fn is_instruction(&self, offset: u32) -> bool {
        offset.is_multiple_of(4) && offset >= self.start && self.starts.get((offset - self.start) as usize / 4)
    }

    /// Whether a block begins at an offset: only there a branch, a call's return or an entry can lead.
    #[must_use]
    pub fn is_block_start(&self, offset: u32) -> bool {
        self.blocks.at(offset).is_some()
    }

    /// Offset of the reached instruction before an offset, wherever it leads.
    #[must_use]
    pub fn instruction_before(&self, offset: u32) -> Option<u32> {
        let distance = offset.checked_sub(self.start)?;
        Some(self.start + self.starts.previous(distance as usize / 4)? as u32 * 4)
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

    /// Whether the instruction at an offset only makes, or uses, addresses from which something is fetched ahead: a get-PC,
    /// a sum, a copy, or the fetch. Where these point changes no result.
    #[must_use]
    pub fn serves_fetching(&self, offset: u32) -> bool {
        self.serving.binary_search(&offset).is_ok()
    }

    /// Whether an address in code goes from here to where it is not followed: then anything may be called by someone.
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

    /// Whether registers are chosen by an index that is state of the wave.
    #[must_use]
    pub fn uses_index_mode(&self) -> bool {
        self.indexed
    }

    /// For each block the numbers of its predecessors: where they begin, and the numbers.
    #[must_use]
    pub fn predecessors(&self) -> (Vec<u32>, Vec<u32>) {
        self.blocks.predecessors()
    }

    /// Blocks in reverse postorder from the entries; all that are there, because only what is reached is a block.
    #[must_use]
    pub fn reverse_postorder(&self) -> Vec<u32> {
        let mut seen = Bits::new(self.blocks.len());
        let mut order = Vec::with_capacity(self.blocks.len());
        let mut stack: Vec<(u32, u32)> = Vec::new();
        let entries = self.entries.iter().filter_map(|entry| self.block_at(entry.offset));
        for root in entries.chain(0..self.blocks.len()) {
            if !seen.set(root) {
                continue;
            }
            stack.push((root as u32, 0));
            while let Some((block, next)) = stack.last_mut() {
                let successor = self.successors(*block as usize).get(*next as usize).copied();
                *next += 1;
                match successor {
                    Some(to) if seen.set(to as usize) => stack.push((to, 0)),
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
            + self.entries.capacity() * size_of::<Entry>()
            + self.blocks.memory()
            + self.calls.capacity() * size_of::<CallSite>()
            + self.problems.capacity() * size_of::<Problem>()
            + self.pc_values.capacity() * size_of::<PcValue>()
            + self.modes.capacity() * 4
            + self.serving.capacity() * 4
            + self.starts.bytes()
    }
}
