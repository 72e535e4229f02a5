//! Basic blocks.

use crate::bits::Bits;
use std::iter::{Chain, Copied, Take};
use std::ops::Deref;
use std::{array, slice};

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Into the next block, which something else leads to as well.
    Fall,
    /// By a branch that is always taken.
    Branch,
    /// By a branch that may be taken: the target, then the next block.
    Conditional,
    /// By a call, which comes back behind it.
    Call,
    /// By a jump to an address that was found in scalar registers: a long branch. It has no successor where no path comes to
    /// it, because the sign of a distance is known that is asked for before.
    Jump,
    /// By a jump to an address that was loaded: to one of the places in its function that words of the file name. Whether it
    /// may lead out of the function as well, [`Function::leaves`](crate::Function::leaves) says.
    Table,
    /// Back to where the function was called from; the address is in a pair of scalar registers.
    Return,
    /// Into another function, for good.
    Tail,
    /// The wave ends.
    End,
    /// Nobody knows: a [`Problem`](crate::Problem) of the function says why.
    Unknown,
}

impl Exit {
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

/// Instructions of which, if the first is executed, all are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Offset of the first instruction.
    pub start: u32,
    /// Offset of the last instruction.
    pub last: u32,
    /// Offset behind the last instruction.
    pub end: u32,
    /// How it ends.
    pub exit: Exit,
    /// For a return the first register of the pair; it is 255 otherwise.
    pub(crate) link: u8,
}

impl Block {
    /// The first register of the pair that a return takes its address from.
    #[must_use]
    pub fn returns_to(&self) -> Option<u8> {
        (self.exit == Exit::Return).then_some(self.link)
    }
}

/// Numbers of the blocks that follow a block, the taken branch first; those of a table rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Successors<'f> {
    to: [u32; 2],
    count: u8,
    /// The targets of a table, which all jumps of a function share; then there are no others.
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

/// Where a block goes on in its function.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Goes {
    /// Number of the block at the target of its branch or jump.
    pub(crate) taken: Option<u32>,
    /// In the block behind it.
    pub(crate) next: bool,
}

/// The blocks of a function by offset, eight bytes each.
///
/// A block ends where the next one begins or the code that is reached does, so the last instruction is the one before
/// that; it goes on in the next block and in at most one other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blocks {
    list: Box<[Packed]>,
    /// Numbers of blocks and of the blocks at their targets where these have too many bits; rising.
    far: Vec<(u32, u32)>,
    /// Numbers of the blocks to which each block leads that ends with [`Exit::Table`]; rising.
    table: Box<[u32]>,
}

/// From the lowest bit: the exit (4 bits), dwords of the last instruction (3), whether a block follows at the target of a
/// branch, whether the one behind does, the number of the former or the register of a return (23).
#[derive(Debug, Clone, Copy)]
struct Packed {
    start: u32,
    bits: u32,
}

const TAKEN: u32 = 1 << 7;
const NEXT: u32 = 1 << 8;
const NUMBER: u32 = 9;
/// The number stands in the list of far ones.
const FAR: u32 = u32::MAX >> NUMBER;

impl Packed {
    fn exit(self) -> Exit {
        Exit::ALL.get((self.bits & 15) as usize).copied().unwrap_or(Exit::Unknown)
    }
}

impl Blocks {
    /// Of their offsets; how they end is still to be said.
    pub(crate) fn new(starts: impl Iterator<Item = u32>, count: usize) -> Self {
        let mut list = Vec::with_capacity(count);
        list.extend(starts.map(|start| Packed { start, bits: Exit::Unknown as u32 }));
        Self { list: list.into(), far: Vec::new(), table: Box::default() }
    }

    /// Says where blocks lead that end with [`Exit::Table`].
    pub(crate) fn set_table(&mut self, mut targets: Vec<u32>) {
        targets.sort_unstable();
        targets.dedup();
        self.table = targets.into();
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Offset of a block.
    pub(crate) fn start(&self, number: usize) -> u32 {
        self.list[number].start
    }

    /// Offset behind a block of which that is known, at most; `end` is that behind the function.
    pub(crate) fn limit(&self, number: usize, end: u32) -> u32 {
        self.list.get(number + 1).map_or(end, |next| next.start)
    }

    /// Says how a block ends. Blocks come in order.
    pub(crate) fn finish(&mut self, number: usize, last_len: u8, exit: Exit, link: u8, goes: Goes) {
        let value = match goes.taken {
            None => u32::from(link),
            Some(taken) if taken < FAR => taken,
            Some(taken) => {
                self.far.push((number as u32, taken));
                FAR
            }
        };
        let mut bits = exit as u32 | u32::from(last_len / 4) << 4 | value << NUMBER;
        bits |= if goes.taken.is_some() { TAKEN } else { 0 };
        bits |= if goes.next { NEXT } else { 0 };
        self.list[number].bits = bits;
    }

    /// The block with that number; `code` is where instructions begin in its function, `span` the function.
    #[inline]
    pub(crate) fn get(&self, number: usize, code: &Bits, span: (u32, u32)) -> Block {
        let Packed { start, bits } = self.list[number];
        let limit = (self.limit(number, span.1) - span.0).div_ceil(4) as usize;
        let last = code.previous(limit).map_or(start, |last| span.0 + last as u32 * 4);
        let exit = self.list[number].exit();
        let link = if exit == Exit::Return { (bits >> NUMBER) as u8 } else { 255 };
        Block { start, last, end: last + (bits >> 4 & 7) * 4, exit, link }
    }

    #[inline]
    pub(crate) fn exit(&self, number: usize) -> Exit {
        self.list[number].exit()
    }

    /// Nobody knows where a block goes on that looked like a return.
    pub(crate) fn forget_exit(&mut self, number: usize) {
        let bits = &mut self.list[number].bits;
        *bits = *bits & !15 | Exit::Unknown as u32;
    }

    #[inline]
    pub(crate) fn successors(&self, number: usize) -> Successors<'_> {
        let mut found = Successors::default();
        let Some(Packed { bits, .. }) = self.list.get(number) else { return found };
        if bits & 15 == Exit::Table as u32 {
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
        let found = self.far.binary_search_by_key(&number, |far| far.0).ok();
        found.and_then(|found| self.far.get(found)).map_or(0, |far| far.1)
    }

    /// Number of the last block that begins at an offset or before it.
    pub(crate) fn before(&self, offset: u32) -> Option<usize> {
        self.list.partition_point(|block| block.start <= offset).checked_sub(1)
    }

    /// Number of the block that begins at an offset.
    pub(crate) fn at(&self, offset: u32) -> Option<usize> {
        self.list.binary_search_by_key(&offset, |block| block.start).ok()
    }

    pub(crate) fn edges(&self) -> usize {
        let direct: usize = self.list.iter().map(|block| (block.bits & (TAKEN | NEXT)).count_ones() as usize).sum();
        let jumps =
            self.table.first().map_or(0, |_| (0..self.len()).filter(|one| self.exit(*one) == Exit::Table).count());
        direct + jumps * self.table.len()
    }

    /// For each block the numbers of its predecessors: where they begin, and the numbers.
    pub(crate) fn predecessors(&self) -> (Vec<u32>, Vec<u32>) {
        let mut first = vec![0u32; self.len() + 1];
        for to in (0..self.len()).flat_map(|block| self.successors(block)) {
            if let Some(count) = first.get_mut(to as usize + 1) {
                *count += 1;
            }
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let (mut next, mut from) = (first.clone(), vec![0u32; first.last().map_or(0, |count| *count as usize)]);
        for block in 0..self.len() {
            for to in self.successors(block) {
                let slot = &mut next[to as usize];
                from[*slot as usize] = block as u32;
                *slot += 1;
            }
        }
        (first, from)
    }

    /// Bytes in allocations.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.list) + self.far.capacity() * size_of::<(u32, u32)>() + size_of_val(&*self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        let mut code = Bits::new(16);
        assert!([0, 1, 3, 8].into_iter().all(|dword| code.set(dword)));
        let mut blocks = Blocks::new([100, 112, 132].into_iter(), 3);
        blocks.finish(0, 8, Exit::Conditional, 255, Goes { taken: Some(2), next: true });
        blocks.finish(1, 20, Exit::Branch, 255, Goes { taken: Some(FAR + 7), next: false });
        blocks.finish(2, 4, Exit::Return, 30, Goes::default());
        let block = |number| blocks.get(number, &code, (100, 164));
        let (start, last, end) = (100, 104, 112);
        assert_eq!(block(0), Block { start, last, end, exit: Exit::Conditional, link: 255 });
        assert_eq!(block(1), Block { start: 112, last: 112, end: 132, exit: Exit::Branch, link: 255 });
        assert_eq!(block(2), Block { start: 132, last: 132, end: 136, exit: Exit::Return, link: 30 });
        let successors = |number| blocks.successors(number).to_vec();
        assert_eq!([successors(0), successors(1), successors(2)], [vec![2, 1], vec![FAR + 7], vec![]]);
        assert_eq!(
            (blocks.before(99), blocks.before(131), blocks.at(132), blocks.at(133)),
            (None, Some(1), Some(2), None)
        );
        assert_eq!((blocks.edges(), blocks.successors(3).len()), (3, 0));
    }

    #[test]
    fn jumps_of_a_table_share_their_targets() {
        let mut blocks = Blocks::new([0, 4, 8].into_iter(), 3);
        blocks.finish(0, 4, Exit::Table, 255, Goes::default());
        blocks.finish(1, 4, Exit::Fall, 255, Goes { taken: None, next: true });
        blocks.finish(2, 4, Exit::Table, 255, Goes::default());
        blocks.set_table(vec![2, 1, 2]);
        let successors = |number| blocks.successors(number).into_iter().collect::<Vec<_>>();
        assert_eq!([successors(0), successors(1), successors(2)], [vec![1, 2], vec![2], vec![1, 2]]);
        assert_eq!((&blocks.successors(0)[..], blocks.edges()), (&[1, 2][..], 5));
        assert_eq!(blocks.predecessors(), (vec![0, 0, 2, 5], vec![0, 2, 0, 1, 2]));
    }

    #[test]
    fn exits_have_the_numbers_of_their_places() {
        assert!(Exit::ALL.iter().enumerate().all(|(number, exit)| *exit as usize == number));
    }
}
