//! Loops: the blocks that run repeatedly, and their nesting depth.
//!
//! A loop is a strongly connected component of the blocks. Its inner loops are the components that remain when its
//! headers, the blocks through which it is entered, are removed. So loops with several entries are loops, too, and no
//! dominators are needed.
//!
//! Invariants: an outer loop precedes its inner ones. Work is linear in the edges for each level of nesting, and beyond
//! [`DEEPEST`] levels the rest is one loop.

use crate::function::Function;

/// Levels that are distinguished.
const DEEPEST: u8 = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// Numbers of the blocks through which it is entered, or to which an edge inside branches back; ascending.
    pub headers: Vec<u32>,
    /// Numbers of all its blocks, those of inner loops included; ascending.
    pub blocks: Vec<u32>,
    /// 1 for an outermost loop.
    pub depth: u8,
    /// Number of the enclosing loop.
    pub parent: Option<u32>,
}

/// The loops of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoopNest {
    /// Outer loops before inner ones.
    pub loops: Vec<Loop>,
    /// For each block its number of enclosing loops.
    pub depth: Vec<u8>,
}

/// Blocks in which loops are still to be found.
struct LoopRegion {
    blocks: Vec<u32>,
    /// Number of the loop that has them.
    parent: Option<u32>,
    /// The depth of a loop among them.
    depth: u8,
}

impl LoopNest {
    /// The loops of a function.
    #[must_use]
    pub fn of(function: &Function) -> Self {
        let count = function.block_count();
        let mut nest = Self { loops: Vec::new(), depth: vec![0; count] };
        let predecessors = function.predecessors();
        // Each block belongs to a region: the rest of the loop being examined. 0 means none.
        let mut region = vec![1u32; count];
        let mut next_region = 2;
        let mut work = vec![LoopRegion { blocks: (0..count as u32).collect(), parent: None, depth: 1 }];
        while let Some(LoopRegion { blocks, parent, depth }) = work.pop() {
            for part in components(function, &region, &blocks) {
                let is_loop = part.len() > 1 || predecessors.of_block(part[0] as usize).contains(&part[0]);
                if !is_loop {
                    continue;
                }
                let entered = part.iter().copied().filter(|block| {
                    let before = predecessors.of_block(*block as usize);
                    before.iter().any(|before| part.binary_search(before).is_err())
                });
                let mut headers: Vec<u32> = entered.collect();
                let starts = function.entries.iter().filter_map(|entry| function.block_at(entry.offset));
                headers.extend(starts.map(|block| block as u32).filter(|block| part.binary_search(block).is_ok()));
                headers.sort_unstable();
                headers.dedup();
                if headers.is_empty() {
                    headers.push(part[0]);
                }
                let number = nest.loops.len() as u32;
                part.iter().for_each(|block| nest.depth[*block as usize] = depth);
                let rest: Vec<u32> =
                    part.iter().copied().filter(|block| headers.binary_search(block).is_err()).collect();
                headers.iter().for_each(|header| region[*header as usize] = 0);
                rest.iter().for_each(|block| region[*block as usize] = next_region);
                next_region += 1;
                nest.loops.push(Loop { headers, blocks: part, depth, parent });
                if depth < DEEPEST && !rest.is_empty() {
                    work.push(LoopRegion { blocks: rest, parent: Some(number), depth: depth + 1 });
                }
            }
        }
        nest
    }

    /// The innermost loop that holds a block.
    #[must_use]
    pub fn innermost(&self, block: u32) -> Option<&Loop> {
        self.loops.iter().filter(|one: &&Loop| one.blocks.binary_search(&block).is_ok()).max_by_key(|one| one.depth)
    }

    /// Whether a block is a header of some loop.
    #[must_use]
    pub fn is_header(&self, block: u32) -> bool {
        self.loops.iter().any(|one| one.headers.binary_search(&block).is_ok())
    }
}

/// Strongly connected components of some blocks, by edges inside of their region only; each sorted.
fn components(function: &Function, region: &[u32], blocks: &[u32]) -> Vec<Vec<u32>> {
    let Some(first) = blocks.first() else { return Vec::new() };
    let own = region[*first as usize];
    // Numbers within `blocks`, which are sorted.
    let groups = crate::calls::bottom_up(blocks.len(), |at: usize| {
        let next =
            function.successors(blocks[at] as usize).into_iter().filter(move |to: &u32| region[*to as usize] == own);
        next.filter_map(move |to| blocks.binary_search(&to).ok().map(|to| to as u32))
    });
    groups.into_iter().map(|group| group.into_iter().map(|at| blocks[at as usize]).collect()).collect()
}
