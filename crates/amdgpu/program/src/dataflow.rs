//! The solver of data flow problems: block by block to a fixed point.
//!
//! A problem has the transfer function of a block and the meet of two states; its direction is that of the edges that
//! the caller gives: successors for a forward problem, predecessors for a backward one. States belong to the problem:
//! some are rows of bits, some one value for all blocks.
//!
//! Invariants: of the blocks to visit, the first one in order is next. If transfer and meet are monotone, the result
//! does not depend on that order. All calls are static: the solver costs no more than a loop in each analysis would.
//!
//! Not solved here: [`crate::address_slice`], which follows one address back from one place and never sees the other blocks;
//! bank modes across functions, whose nodes are functions that learn of one another while they are solved; the levels
//! of liveness summaries, each of which all cores solve at once.

use crate::bits::DwordSet;

/// A data flow problem on the blocks of one function.
pub(crate) trait Dataflow {
    /// The state that leaves a block.
    type Flow;

    /// Applies the transfer function of a block; `None` if nothing new leaves it.
    fn transfer(&mut self, block: usize) -> Option<Self::Flow>;

    /// Merges a state into that of a block that it reaches. Returns whether the block must be visited.
    fn meet(&mut self, block: usize, flow: &Self::Flow) -> bool;
}

/// Solves a problem along edges, from some blocks on. Returns the number of visits.
pub(crate) fn solve<D, E>(problem: &mut D, edges: impl Fn(usize) -> E, mut work: WorkList) -> usize
where
    D: Dataflow,
    E: IntoIterator<Item = u32>,
{
    let mut visits = 0;
    while let Some(block) = work.pop() {
        visits += 1;
        let Some(flow) = problem.transfer(block) else { continue };
        for to in edges(block) {
            if problem.meet(to as usize, &flow) {
                work.push(to as usize);
            }
        }
    }
    visits
}

/// The blocks that are still to be visited.
#[derive(Debug)]
pub(crate) struct WorkList {
    /// A bit for each position in the order.
    pending: DwordSet,
    /// No earlier position is pending.
    first: usize,
    /// The blocks by position, and the position of each block; by number if they are empty.
    order: Vec<u32>,
    positions: Vec<u32>,
}

impl WorkList {
    /// Some blocks, by number.
    pub(crate) fn of(pending: DwordSet) -> Self {
        Self { pending, first: 0, order: Vec::new(), positions: Vec::new() }
    }

    /// All blocks, by number.
    pub(crate) fn all(count: usize) -> Self {
        let mut pending = DwordSet::new(count);
        for block in 0..count {
            pending.set_bit(block);
        }
        Self::of(pending)
    }

    /// All blocks, in an order that lists each of them once.
    pub(crate) fn in_order(order: Vec<u32>) -> Self {
        let mut positions = vec![0; order.len()];
        for (position, block) in order.iter().enumerate() {
            positions[*block as usize] = position as u32;
        }
        let Self { pending, first, .. } = Self::all(order.len());
        Self { pending, first, order, positions }
    }

    fn pop(&mut self) -> Option<usize> {
        let position = self.pending.next(self.first)?;
        self.pending.clear(position);
        self.first = position + 1;
        Some(self.order.get(position).map_or(position, |block| *block as usize))
    }

    fn push(&mut self, block: usize) {
        let position = self.positions.get(block).map_or(block, |position| *position as usize);
        self.pending.set_bit(position);
        self.first = self.first.min(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks that are reached from block 0, and the order of the visits.
    #[derive(Default)]
    struct Reached {
        reached: Vec<bool>,
        visits: Vec<usize>,
    }

    impl Dataflow for Reached {
        type Flow = ();

        fn transfer(&mut self, block: usize) -> Option<()> {
            self.visits.push(block);
            self.reached[block].then_some(())
        }

        fn meet(&mut self, block: usize, (): &()) -> bool {
            !std::mem::replace(&mut self.reached[block], true)
        }
    }

    #[test]
    fn a_changed_block_is_visited_again_before_later_ones() {
        // Block 1 comes after block 3, and nothing reaches block 2.
        let edges: [&[u32]; 5] = [&[3], &[4], &[4], &[1], &[]];
        let run = |work: WorkList| {
            let mut problem = Reached { reached: vec![true, false, false, false, false], ..Reached::default() };
            let visits = solve(&mut problem, |block| edges[block].iter().copied(), work);
            assert_eq!(visits, problem.visits.len());
            assert_eq!(problem.reached, [true, true, false, true, true]);
            problem.visits
        };
        assert_eq!(run(WorkList::all(5)), [0, 1, 2, 3, 1, 4]);
        assert_eq!(run(WorkList::in_order(vec![0, 3, 1, 4, 2])), [0, 3, 1, 4, 2]);
    }
}
