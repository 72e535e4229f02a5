//! `wmma_hazard`: distances between matrix instructions and later instructions that touch their registers.
//!
//! The target needs more vector instructions between them than the source ([`RULES`](hotswap_hazards::RULES)). Missing
//! ones are filled with `v_nop`. Distances are counted over every path: a state holds, for each matrix instruction that
//! can still matter, the fewest instructions since it, and where paths meet, the smaller count is kept. Before control
//! flow leaves to unknown code (calls, returns), everything that can still matter is waited out.

use crate::code::{FlowBlock, FunctionFamily, FunctionFlow, Insertion, SiteRefusal, no_operation};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_hazards::{MatrixHazard, RegisterFilter, RegisterTouch, counts_towards_distance, is_xdl};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Flag, Inst, TableEntry};
use std::collections::VecDeque;
use std::ops::Range;

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_wmma_hazard_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::WMMA_HAZARD,
        Apply::Function(FunctionFamily { entries: is_matrix, concerns: is_xdl, confirms: None, insertions }),
    );
}

/// A matrix instruction that can still matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PendingMatrix {
    /// Its number in [`Matrices`].
    matrix: u32,
    /// The instructions that count since it.
    distance: u8,
}

/// Those of a place, by their numbers in ascending order.
type PendingMatrices = Vec<PendingMatrix>;

/// Instructions that are missing before one of a block.
#[derive(Debug, Clone, Copy)]
struct MissingDistance {
    /// The number of the instruction in its block.
    before: usize,
    count: u8,
}

fn insertions(flow: &FunctionFlow<'_>) -> Result<Vec<Insertion>, SiteRefusal> {
    let matrices = Matrices::from_flow(flow);
    if matrices.all.is_empty() {
        return Ok(Vec::new());
    }
    let missing = missing_distances(flow, &matrices);
    let nop = no_operation(flow.target)?;
    let blocks = missing.into_iter().enumerate();
    Ok(blocks
        .flat_map(|(block, missing)| {
            missing.into_iter().map(move |MissingDistance { before, count }| Insertion {
                block,
                before,
                code: vec![nop; usize::from(count)],
            })
        })
        .collect())
}

fn is_matrix(entry: TableEntry) -> bool {
    entry.is(Flag::Wmma) || entry.is(Flag::Swmmac)
}

/// A matrix instruction: its number in the block, its registers, and the bank mode after it.
struct MatrixInst {
    index: usize,
    hazard: MatrixHazard,
    behind: VgprBanks,
}

/// The matrix instructions of a function.
struct Matrices {
    all: Vec<MatrixInst>,
    /// For each block the start of its own in the list, and finally the length of the list.
    first: Vec<u32>,
}

impl Matrices {
    fn from_flow(flow: &FunctionFlow<'_>) -> Self {
        // Growing a list copies it, while another thread waits for the allocator.
        let most = flow.concerned.iter().map(|block: &usize| flow.block_code(*block).len()).sum::<usize>() / 4 + 4;
        let mut found = Self { all: Vec::with_capacity(most), first: Vec::with_capacity(flow.blocks.len() + 1) };
        let mut concerned = flow.concerned.iter().copied().peekable();
        for (number, block) in flow.blocks.iter().enumerate() {
            found.first.push(found.all.len() as u32);
            if concerned.next_if_eq(&number).is_none() {
                continue;
            }
            let mut banks = block.banks;
            for (index, inst) in flow.block_code(number).iter().enumerate() {
                let hazard =
                    if is_matrix(inst.entry()) { MatrixHazard::of_instruction(inst, flow.target, banks) } else { None };
                banks = banks.mode_after(inst, flow.target);
                found.all.extend(hazard.map(|hazard| MatrixInst { index, hazard, behind: banks }));
            }
        }
        found.first.push(found.all.len() as u32);
        found
    }

    fn hazard_of(&self, number: u32) -> &MatrixHazard {
        &self.all[number as usize].hazard
    }

    /// The numbers of those of a block.
    fn in_block(&self, block: usize) -> Range<u32> {
        self.first[block]..self.first[block + 1]
    }
}

/// For each block the instructions before which some are missing, and how many. The state before a block only ever
/// loses distance, so this terminates. The result of the last iteration counts.
fn missing_distances(flow: &FunctionFlow<'_>, matrices: &Matrices) -> Vec<Vec<MissingDistance>> {
    let mut before = vec![PendingMatrices::new(); flow.blocks.len()];
    let mut walked: Vec<BlockWalkResult> = flow.blocks.iter().map(|_| BlockWalkResult::default()).collect();
    let mut work: VecDeque<usize> = (0..flow.blocks.len()).collect();
    let mut waiting = vec![true; flow.blocks.len()];
    let mut line = BlockWalk::new(flow, matrices);
    while let Some(number) = work.pop_front() {
        waiting[number] = false;
        // Most blocks lack a matrix instruction, and one before them that matters.
        if before[number].is_empty() && matrices.in_block(number).is_empty() {
            continue;
        }
        line.begin_block(&before[number]);
        line.walk_block(number, &mut walked[number]);
        let state = &walked[number].end;
        for next in flow.blocks[number].successors.iter().map(|next| *next as usize) {
            let Some(known) = before.get_mut(next) else { continue };
            if join_distances(known, state) && !waiting[next] {
                waiting[next] = true;
                work.push_back(next);
            }
        }
    }
    walked.into_iter().map(|walked| walked.missing).collect()
}

/// The result of walking a block.
#[derive(Default)]
struct BlockWalkResult {
    /// The missing instructions, by the numbers of those that they must come before.
    missing: Vec<MissingDistance>,
    /// The states after the matrix instructions of the block, concatenated, and the start of each in that list.
    states: PendingMatrices,
    first: Vec<u32>,
    /// The state at the end.
    end: PendingMatrices,
}

impl BlockWalkResult {
    fn clear(&mut self) {
        self.missing.clear();
        self.states.clear();
        self.first.clear();
        self.end.clear();
    }

    /// Copies another result into its own lists.
    fn copy_results(&mut self, other: &Self) {
        self.missing.clone_from(&other.missing);
        self.states.clone_from(&other.states);
        self.first.clone_from(&other.first);
        self.end.clone_from(&other.end);
    }

    /// The state after matrix instruction number `own` of the block.
    fn state_after(&self, own: usize) -> Option<&[PendingMatrix]> {
        let first = *self.first.get(own)? as usize;
        let end = self.first.get(own + 1).map_or(self.states.len(), |end| *end as usize);
        self.states.get(first..end)
    }

    /// Records the state after one more of them.
    fn record_state(&mut self, state: impl Iterator<Item = PendingMatrix>) {
        self.first.push(self.states.len() as u32);
        self.states.extend(state);
    }

    /// Takes over the results of another walk after matrix instruction number `own`, which is instruction `index`.
    fn adopt_results(&mut self, other: &Self, own: usize, index: usize) {
        let first = other.first[own] as usize;
        let moved = self.states.len() as u32;
        self.first.extend(other.first[own..].iter().map(|one| one - first as u32 + moved));
        self.states.extend_from_slice(&other.states[first..]);
        self.missing.extend(other.missing.iter().filter(|missing| missing.before > index));
        self.end.clone_from(&other.end);
    }
}

/// Takes over smaller distances. Returns whether there were any.
fn join_distances(known: &mut PendingMatrices, other: &PendingMatrices) -> bool {
    let mut changed = false;
    for &one in other {
        match known.binary_search_by_key(&one.matrix, |known| known.matrix) {
            Ok(found) => {
                changed |= one.distance < known[found].distance;
                known[found].distance = one.distance.min(known[found].distance);
            }
            Err(place) => {
                known.insert(place, one);
                changed = true;
            }
        }
    }
    changed
}

/// A matrix instruction that can still matter during a walk.
#[derive(Debug, Clone, Copy)]
struct CountedMatrix {
    /// Its number in [`Matrices`].
    matrix: u32,
    /// The count after it.
    at: u64,
}

/// The walk of one block.
struct BlockWalk<'f> {
    flow: &'f FunctionFlow<'f>,
    matrices: &'f Matrices,
    /// Matrix instructions that can still matter, by their numbers in ascending order.
    state: Vec<CountedMatrix>,
    /// Instructions that counted so far.
    count: u64,
    /// From this count on, one of them can no longer matter.
    enough: u64,
    /// All of them, and some that mattered before.
    near: RegisterFilter,
    touch: RegisterTouch,
    /// The current result. Its lists grow only for the longest block; those that are kept are allocated
    /// with their exact length.
    found: BlockWalkResult,
}

/// Matrix instructions, each with the number of instructions counted since.
fn distances_since(state: &[CountedMatrix], count: u64) -> impl Iterator<Item = PendingMatrix> {
    // A distance that saturates a byte no longer matters.
    state.iter().map(move |known| PendingMatrix { matrix: known.matrix, distance: (count - known.at).min(255) as u8 })
}

/// The matrix instruction of a block after which the state is that of the previous walk.
struct KnownFrom {
    /// Its number among the matrix instructions of the block.
    own: usize,
    /// Its number among all instructions of the block.
    index: usize,
}

/// The count at the start of a block: no state holds a distance this large.
const BEGIN: u64 = 256;

impl<'f> BlockWalk<'f> {
    fn new(flow: &'f FunctionFlow<'f>, matrices: &'f Matrices) -> Self {
        let (state, near, touch) = (Vec::with_capacity(16), RegisterFilter::default(), RegisterTouch::default());
        Self { flow, matrices, state, count: BEGIN, enough: u64::MAX, near, touch, found: BlockWalkResult::default() }
    }

    fn begin_block(&mut self, before: &PendingMatrices) {
        (self.count, self.enough, self.near) = (BEGIN, 0, RegisterFilter::default());
        self.state.clear();
        for &PendingMatrix { matrix, distance } in before {
            self.state.push(CountedMatrix { matrix, at: BEGIN - u64::from(distance) });
            self.near.add(self.matrices.hazard_of(matrix));
        }
    }

    /// Walks a block; `walked` is the previous result.
    fn walk_block(&mut self, number: usize, walked: &mut BlockWalkResult) {
        self.found.clear();
        if let Some(KnownFrom { own, index }) = self.up_to_known(number, walked) {
            self.found.adopt_results(walked, own, index);
        } else {
            self.found.end.extend(distances_since(&self.state, self.count));
        }
        walked.copy_results(&self.found);
    }

    /// Walks a block until the state equals that of the previous walk; from there on the results are the same.
    fn up_to_known(&mut self, number: usize, walked: &BlockWalkResult) -> Option<KnownFrom> {
        let FlowBlock { leaves, mut banks, .. } = self.flow.blocks[number];
        let (code, matrices) = (self.flow.block_code(number), self.matrices);
        let first = matrices.in_block(number).start;
        let mut own = matrices.in_block(number).peekable();
        let mut index = 0;
        while index < code.len() {
            // In most of the code, no earlier matrix instruction matters.
            if self.state.is_empty() {
                let next = own.next()?;
                let matrix = &matrices.all[next as usize];
                if self.enter_matrix(next, first, walked) {
                    return Some(KnownFrom { own: (next - first) as usize, index: matrix.index });
                }
                (index, banks) = (matrix.index + 1, matrix.behind);
                continue;
            }
            let inst = &code[index];
            let matrix = own.next_if(|matrix| matrices.all[*matrix as usize].index == index);
            let mut needed = match matrix {
                Some(matrix) => self.before_matrix(matrices.hazard_of(matrix)),
                None => self.before_other(inst, banks),
            };
            if index + 1 == code.len() && leaves {
                needed = needed.max(self.most_missing(|hazard| hazard.spacing.matrix));
            }
            if needed > 0 {
                self.found.missing.push(MissingDistance { before: index, count: needed });
            }
            self.pass_instructions(needed + u8::from(counts_towards_distance(inst)));
            if let Some(matrix) = matrix
                && self.enter_matrix(matrix, first, walked)
            {
                return Some(KnownFrom { own: (matrix - first) as usize, index });
            }
            banks = banks.mode_after(inst, self.flow.target);
            index += 1;
        }
        None
    }

    fn before_matrix(&mut self, next: &MatrixHazard) -> u8 {
        if self.near.may_feed(next) { self.most_missing(|hazard| hazard.distance_to(next)) } else { 0 }
    }

    fn before_other(&mut self, inst: &Inst, banks: VgprBanks) -> u8 {
        self.touch.set_instruction(inst, self.flow.target, banks);
        if !self.near.may_meet(&self.touch) {
            return 0;
        }
        let touch = std::mem::take(&mut self.touch);
        let needed = self.most_missing(|hazard| hazard.required_distance(&touch));
        self.touch = touch;
        needed
    }

    /// The most instructions that are missing.
    fn most_missing(&mut self, distance: impl Fn(&MatrixHazard) -> u8) -> u8 {
        let mut most = 0;
        self.near = RegisterFilter::default();
        for &CountedMatrix { matrix, at } in &self.state {
            let hazard = self.matrices.hazard_of(matrix);
            self.near.add(hazard);
            most = most.max(u64::from(distance(hazard)).saturating_sub(self.count - at));
        }
        // No distance exceeds a byte.
        most.min(255) as u8
    }

    /// Records one more matrix instruction, or the same one again. Returns whether the state equals the previous one
    /// there. `first` is the first one of the block.
    fn enter_matrix(&mut self, matrix: u32, first: u32, walked: &BlockWalkResult) -> bool {
        let hazard = self.matrices.hazard_of(matrix);
        self.near.add(hazard);
        self.enough = self.enough.min(self.count + u64::from(hazard.spacing.matrix));
        let place = self.state.partition_point(|known| known.matrix < matrix);
        match self.state.get_mut(place).filter(|known| known.matrix == matrix) {
            Some(known) => known.at = self.count,
            None => self.state.insert(place, CountedMatrix { matrix, at: self.count }),
        }
        let own = (matrix - first) as usize;
        let is_known = walked
            .state_after(own)
            .is_some_and(|known| known.iter().copied().eq(distances_since(&self.state, self.count)));
        if !is_known {
            self.found.record_state(distances_since(&self.state, self.count));
        }
        is_known
    }

    /// Passes `count` instructions, and drops entries that can no longer matter.
    fn pass_instructions(&mut self, count: u8) {
        self.count += u64::from(count);
        if self.count < self.enough {
            return;
        }
        let (matrices, now) = (self.matrices, self.count);
        let mut enough = u64::MAX;
        self.state.retain(|known| {
            let end = known.at + u64::from(matrices.hazard_of(known.matrix).spacing.matrix);
            enough = enough.min(if now < end { end } else { u64::MAX });
            now < end
        });
        self.enough = enough;
        if self.state.is_empty() {
            self.near = RegisterFilter::default();
        }
    }
}
