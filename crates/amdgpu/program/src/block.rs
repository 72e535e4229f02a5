//! Basic blocks.

use crate::bits::DwordSet;
use std::iter::{Chain, Copied, Take};
use std::ops::Deref;
use std::{array, slice};

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum BlockExit {
    /// Falls through into the next block, which has another predecessor as well.
    Fall,
    /// By a branch that is always taken.
    Branch,
    /// By a branch that may be taken: the target, then the next block.
    Conditional,
    /// By a call, which returns to the next instruction. It lacks a successor where its callee never returns.
    Call,
    /// By a jump to an address that was found in scalar registers: a long branch. It lacks a successor where no path
    /// reaches it, because an earlier test of the distance's sign has a known result.
    Jump,
    /// By a jump to an address that was loaded: to one of the code addresses in its function that words of the file
    /// name. [`Function::leaves`](crate::Function::leaves) reports whether it may leave the function as well.
    Table,
    /// Back to the caller; the address is in a pair of scalar registers.
    Return,
    /// Into another function, without return.
    Tail,
    End,
    /// The target is unknown: a [`AnalysisProblem`](crate::AnalysisProblem) of the function gives the reason.
    Unknown,
}

impl BlockExit {
    const ALL: [Self; 10] = [
        Self::Fall,
        Self::Branch,
        Self::Conditional,
        Self::Call,
        Self::Jump,
        Self::Table,
        Self::Return,
        Self::Tail,
        Self::End,
        Self::Unknown,
    ];
}

/// Instructions that are all executed if the first one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BasicBlock {
    /// Offset of the first instruction.
    pub start: u32,
    /// Offset of the last instruction.
    pub last: u32,
    /// Offset after the last instruction.
    pub end: u32,
    pub exit: BlockExit,
    /// For a return the first register of the pair; it is 255 otherwise.
    pub(crate) link: u8,
}

impl BasicBlock {
    /// The first register of the pair that a return takes its address from.
    #[must_use]
    pub fn returns_to(&self) -> Option<u8> {
        (self.exit == BlockExit::Return).then_some(self.link)
    }
}

/// The predecessors of all blocks of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predecessors {
    /// The start of each block's numbers in `from`, and the end of the last one's.
    first: Vec<u32>,
    from: Vec<u32>,
}

impl Predecessors {
    /// Numbers of the predecessors of a block, ascending.
    #[must_use]
    pub fn of_block(&self, block: usize) -> &[u32] {
        &self.from[self.first[block] as usize..self.first[block + 1] as usize]
    }
}

/// Numbers of the successors of a block, the taken branch first; those of a table ascend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Successors<'f> {
    to: [u32; 2],
    count: u8,
    /// The targets of a table, which all jumps of a function share; then others do not exist.
    table: &'f [u32],
}

impl Successors<'_> {
    fn push(&mut self, to: u32) {
        if let Some(slot) = self.to.get_mut(usize::from(self.count)) {
            *slot = to;
            self.count += 1;
        }
    }
}

impl Deref for Successors<'_> {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match self.table {
            [] => &self.to[..usize::from(self.count)],
            table => table,
        }
    }
}

impl<'f> IntoIterator for Successors<'f> {
    type Item = u32;
    type IntoIter = Chain<Take<array::IntoIter<u32, 2>>, Copied<slice::Iter<'f, u32>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.to.into_iter().take(self.count.into()).chain(self.table.iter().copied())
    }
}

/// Successors of a block in its function.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SuccessorEdges {
    /// Number of the block at the target of its branch or jump.
    pub(crate) taken: Option<u32>,
    /// Whether execution continues in the next block.
    pub(crate) next: bool,
}

/// The blocks of a function by offset, eight bytes each.
///
/// A block ends at the start of the next one or at the end of the reached code, so the last instruction is the one
/// before that. Its successors are the next block and at most one other.
#[derive(Debug, Clone, Default)]
pub(crate) struct PackedBlocks {
    list: Box<[PackedBlock]>,
    /// The successors whose numbers have too many bits, ascending by their blocks.
    far: Vec<FarSuccessor>,
    /// Numbers of the successors of each block that ends with [`BlockExit::Table`]; ascending.
    table: Box<[u32]>,
}

/// The successor of a block at the target of its branch.
#[derive(Debug, Clone, Copy)]
struct FarSuccessor {
    block: u32,
    taken: u32,
}

/// From the lowest bit: the exit (4 bits), dwords of the last instruction (3), whether there is a successor at the
/// target of a branch, whether the next block is one, the number of the former or the register of a return (23).
#[derive(Debug, Clone, Copy)]
struct PackedBlock {
    start: u32,
    bits: u32,
}

const TAKEN: u32 = 1 << 7;
const NEXT: u32 = 1 << 8;
const NUMBER: u32 = 9;
/// The number is in the list of far ones.
const FAR: u32 = u32::MAX >> NUMBER;

impl PackedBlock {
    fn exit(self) -> BlockExit {
        BlockExit::ALL.get((self.bits & 15) as usize).copied().unwrap_or(BlockExit::Unknown)
    }
}

impl PackedBlocks {
    /// From their offsets; their exits are set later.
    pub(crate) fn new(starts: impl Iterator<Item = u32>, count: usize) -> Self {
        let mut list = Vec::with_capacity(count);
        list.extend(starts.map(|start| PackedBlock { start, bits: BlockExit::Unknown as u32 }));
        Self { list: list.into(), far: Vec::new(), table: Box::default() }
    }

    /// Sets the successors of the blocks that end with [`BlockExit::Table`].
    pub(crate) fn set_table(&mut self, mut targets: Vec<u32>) {
        targets.sort_unstable();
        targets.dedup();
        self.table = targets.into();
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Offset of a block.
    pub(crate) fn block_start(&self, number: usize) -> u32 {
        self.list[number].start
    }

    /// Upper bound for the end offset of a block, known before its exit is; `end` is the end of the function.
    pub(crate) fn end_limit(&self, number: usize, end: u32) -> u32 {
        self.list.get(number + 1).map_or(end, |next| next.start)
    }

    /// Sets the exit of a block. Blocks come in order.
    pub(crate) fn finish_block(
        &mut self,
        number: usize,
        last_len: u8,
        exit: BlockExit,
        link: u8,
        goes: SuccessorEdges,
    ) {
        let value = match goes.taken {
            None => u32::from(link),
            Some(taken) if taken < FAR => taken,
            Some(taken) => {
                self.far.push(FarSuccessor { block: number as u32, taken });
                FAR
            }
        };
        let mut bits = exit as u32 | u32::from(last_len / 4) << 4 | value << NUMBER;
        bits |= if goes.taken.is_some() { TAKEN } else { 0 };
        bits |= if goes.next { NEXT } else { 0 };
        self.list[number].bits = bits;
    }

    /// The block with that number; `code` has the instruction starts of its function, `span` is the function's range.
    #[inline]
    pub(crate) fn get(&self, number: usize, code: &DwordSet, span: (u32, u32)) -> BasicBlock {
        let PackedBlock { start, bits } = self.list[number];
        let limit = (self.end_limit(number, span.1) - span.0).div_ceil(4) as usize;
        let last = code.previous_set_bit(limit).map_or(start, |last| span.0 + last as u32 * 4);
        let exit = self.list[number].exit();
        let link = if exit == BlockExit::Return { (bits >> NUMBER) as u8 } else { 255 };
        BasicBlock { start, last, end: last + (bits >> 4 & 7) * 4, exit, link }
    }

    #[inline]
    pub(crate) fn exit_of_block(&self, number: usize) -> BlockExit {
        self.list[number].exit()
    }

    /// Marks the successors of a block as unknown that looked like a return.
    pub(crate) fn forget_exit(&mut self, number: usize) {
        let bits = &mut self.list[number].bits;
        *bits = *bits & !15 | BlockExit::Unknown as u32;
    }

    #[inline]
    pub(crate) fn block_successors(&self, number: usize) -> Successors<'_> {
        let mut found = Successors::default();
        let Some(PackedBlock { bits, .. }) = self.list.get(number) else { return found };
        if bits & 15 == BlockExit::Table as u32 {
            found.table = &self.table;
            return found;
        }
        if bits & TAKEN != 0 {
            found.push(match bits >> NUMBER {
                FAR => self.far_target(number as u32),
                taken => taken,
            });
        }
        if bits & NEXT != 0 {
            found.push(number as u32 + 1);
        }
        found
    }

    #[cold]
    fn far_target(&self, number: u32) -> u32 {
        let found = self.far.binary_search_by_key(&number, |far| far.block).ok();
        found.and_then(|found| self.far.get(found)).map_or(0, |far| far.taken)
    }

    /// Number of the last block that begins at an offset or before it.
    pub(crate) fn block_before(&self, offset: u32) -> Option<usize> {
        self.list.partition_point(|block| block.start <= offset).checked_sub(1)
    }

    /// Number of the block that begins at an offset.
    pub(crate) fn block_starting_at(&self, offset: u32) -> Option<usize> {
        self.list.binary_search_by_key(&offset, |block| block.start).ok()
    }

    pub(crate) fn edge_count(&self) -> usize {
        let direct: usize = self.list.iter().map(|block| (block.bits & (TAKEN | NEXT)).count_ones() as usize).sum();
        let jumps = self
            .table
            .first()
            .map_or(0, |_| (0..self.len()).filter(|one| self.exit_of_block(*one) == BlockExit::Table).count());
        direct + jumps * self.table.len()
    }

    pub(crate) fn predecessors(&self) -> Predecessors {
        let mut first = vec![0u32; self.len() + 1];
        for to in (0..self.len()).flat_map(|block| self.block_successors(block)) {
            if let Some(count) = first.get_mut(to as usize + 1) {
                *count += 1;
            }
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let (mut next, mut from) = (first.clone(), vec![0u32; first.last().map_or(0, |count| *count as usize)]);
        for block in 0..self.len() {
            for to in self.block_successors(block) {
                let slot = &mut next[to as usize];
                from[*slot as usize] = block as u32;
                *slot += 1;
            }
        }
        Predecessors { first, from }
    }

    /// Bytes that its allocations take.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.list) + self.far.capacity() * size_of::<FarSuccessor>() + size_of_val(&*self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let mut code = DwordSet::new(16);
        assert!([0, 1, 3, 8].into_iter().all(|dword| code.set_bit(dword)));
        let mut blocks = PackedBlocks::new([100, 112, 132].into_iter(), 3);
        blocks.finish_block(0, 8, BlockExit::Conditional, 255, SuccessorEdges { taken: Some(2), next: true });
        blocks.finish_block(1, 20, BlockExit::Branch, 255, SuccessorEdges { taken: Some(FAR + 7), next: false });
        blocks.finish_block(2, 4, BlockExit::Return, 30, SuccessorEdges::default());
        let block = |number| blocks.get(number, &code, (100, 164));
        let (start, last, end) = (100, 104, 112);
        assert_eq!(block(0), BasicBlock { start, last, end, exit: BlockExit::Conditional, link: 255 });
        assert_eq!(block(1), BasicBlock { start: 112, last: 112, end: 132, exit: BlockExit::Branch, link: 255 });
        assert_eq!(block(2), BasicBlock { start: 132, last: 132, end: 136, exit: BlockExit::Return, link: 30 });
        let successors = |number| blocks.block_successors(number).to_vec();
        assert_eq!([successors(0), successors(1), successors(2)], [vec![2, 1], vec![FAR + 7], vec![]]);
        assert_eq!(
            (
                blocks.block_before(99),
                blocks.block_before(131),
                blocks.block_starting_at(132),
                blocks.block_starting_at(133)
            ),
            (None, Some(1), Some(2), None)
        );
        assert_eq!((blocks.edge_count(), blocks.block_successors(3).len()), (3, 0));
    }

    #[test]
    fn jumps_of_a_table_share_their_targets() {
        let mut blocks = PackedBlocks::new([0, 4, 8].into_iter(), 3);
        blocks.finish_block(0, 4, BlockExit::Table, 255, SuccessorEdges::default());
        blocks.finish_block(1, 4, BlockExit::Fall, 255, SuccessorEdges { taken: None, next: true });
        blocks.finish_block(2, 4, BlockExit::Table, 255, SuccessorEdges::default());
        blocks.set_table(vec![2, 1, 2]);
        let successors = |number| blocks.block_successors(number).into_iter().collect::<Vec<_>>();
        assert_eq!([successors(0), successors(1), successors(2)], [vec![1, 2], vec![2], vec![1, 2]]);
        assert_eq!((&blocks.block_successors(0)[..], blocks.edge_count()), (&[1, 2][..], 5));
        assert_eq!(blocks.predecessors(), Predecessors { first: vec![0, 0, 2, 5], from: vec![0, 2, 0, 1, 2] });
    }

    #[test]
    fn exits_have_the_numbers_of_their_places() {
        assert!(BlockExit::ALL.iter().enumerate().all(|(number, exit)| *exit as usize == number));
    }
}
