//! `wmma_hazard`: distances between matrix instructions and what touches their registers.
//!
//! The target needs more vector instructions between them than the source did ([`Spacing`](crate::code::Spacing)). Missing
//! ones become `v_nop`. Distances are counted over every path: a state holds for each matrix instruction that can still
//! matter the fewest instructions since it; where paths meet, the fewer count. Where execution goes to code that is not
//! known (calls, returns), everything that can still matter is waited out.

use crate::code::{Block, Flow, FunctionFamily, Hazard, Insertion, Refusal, Spacing, Touch, counts, no_operation};
use crate::registry::{Apply, Registry};
use crate::table::slot;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Entry, Flag, Inst};
use std::collections::VecDeque;
use std::ops::Range;

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_wmma_hazard_patch(registry: &mut Registry) {
    registry.bind(
        slot::WMMA_HAZARD,
        Apply::Function(FunctionFamily { entries: is_matrix, concerns: needs_distance, insertions }),
    );
}

/// Matrix instructions that can still matter, by their numbers, which rise, with the instructions that count since them.
type State = Vec<(u32, u8)>;

fn insertions(flow: &Flow<'_>) -> Result<Vec<Insertion>, Refusal> {
    let matrices = Matrices::of(flow);
    if matrices.all.is_empty() {
        return Ok(Vec::new());
    }
    let missing = missing(flow, &matrices);
    let nop = no_operation(flow.target)?;
    let in_block = |(block, missing): (usize, Vec<(usize, u8)>)| {
        let code = move |(before, count)| Insertion { block, before, code: vec![nop; usize::from(count)] };
        missing.into_iter().map(code)
    };
    Ok(missing.into_iter().enumerate().flat_map(in_block).collect())
}

fn is_matrix(entry: Entry) -> bool {
    entry.is(Flag::Wmma) || entry.is(Flag::Swmmac)
}

fn needs_distance(inst: &Inst) -> bool {
    Spacing::after(inst).is_some()
}

/// A matrix instruction: its number in the block, its registers, and the bank mode behind it.
struct Matrix {
    index: usize,
    hazard: Hazard,
    behind: VgprBanks,
}

/// The matrix instructions of a function.
struct Matrices {
    all: Vec<Matrix>,
    /// For each block where its own begin in the list; at the end the length of the list.
    first: Vec<u32>,
}

impl Matrices {
    fn of(flow: &Flow<'_>) -> Self {
        let mut found = Self { all: Vec::new(), first: Vec::with_capacity(flow.blocks.len() + 1) };
        let mut concerned = flow.concerned.iter().copied().peekable();
        for (number, block) in flow.blocks.iter().enumerate() {
            found.first.push(found.all.len() as u32);
            if concerned.next_if_eq(&number).is_none() {
                continue;
            }
            let mut banks = block.banks;
            for (index, inst) in flow.code(number).iter().enumerate() {
                let hazard = Hazard::of(inst, flow.target, banks);
                banks = banks.after(inst, flow.target);
                found.all.extend(hazard.map(|hazard| Matrix { index, hazard, behind: banks }));
            }
        }
        found.first.push(found.all.len() as u32);
        found
    }

    fn hazard(&self, number: u32) -> &Hazard {
        &self.all[number as usize].hazard
    }

    /// The numbers of those of a block.
    fn in_block(&self, block: usize) -> Range<u32> {
        self.first[block]..self.first[block + 1]
    }
}

/// For each block the instructions before which some are missing, and how many. The state before a block only ever loses
/// distance, so this ends; what counts is what was found with the last one.
fn missing(flow: &Flow<'_>, matrices: &Matrices) -> Vec<Vec<(usize, u8)>> {
    let mut before = vec![State::new(); flow.blocks.len()];
    let mut missing = vec![Vec::new(); flow.blocks.len()];
    let mut work: VecDeque<usize> = (0..flow.blocks.len()).collect();
    let mut waiting = vec![true; flow.blocks.len()];
    let mut touch = Touch::default();
    while let Some(number) = work.pop_front() {
        waiting[number] = false;
        // Most blocks have no matrix instruction, nor one before them that matters.
        if before[number].is_empty() && matrices.in_block(number).is_empty() {
            continue;
        }
        let mut line = Line { flow, matrices, state: before[number].clone(), missing: Vec::new() };
        line.block(number, &mut touch);
        missing[number] = line.missing;
        let state = line.state;
        for next in flow.blocks[number].successors.iter().map(|next| *next as usize) {
            let Some(known) = before.get_mut(next) else { continue };
            if join(known, &state) && !waiting[next] {
                waiting[next] = true;
                work.push_back(next);
            }
        }
    }
    missing
}

/// Takes over what is nearer; says whether anything was.
fn join(known: &mut State, other: &State) -> bool {
    let mut changed = false;
    for &(matrix, distance) in other {
        match known.binary_search_by_key(&matrix, |(known, _)| *known) {
            Ok(found) => {
                changed |= distance < known[found].1;
                known[found].1 = distance.min(known[found].1);
            }
            Err(place) => {
                known.insert(place, (matrix, distance));
                changed = true;
            }
        }
    }
    changed
}

/// A way through a block.
struct Line<'f> {
    flow: &'f Flow<'f>,
    matrices: &'f Matrices,
    state: State,
    /// Numbers of instructions, and how many must come before each.
    missing: Vec<(usize, u8)>,
}

impl Line<'_> {
    fn block(&mut self, number: usize, touch: &mut Touch) {
        let Block { leaves, mut banks, .. } = self.flow.blocks[number];
        let code = self.flow.code(number);
        let mut own = self.matrices.in_block(number).peekable();
        let mut index = 0;
        while index < code.len() {
            // Most of the code has no matrix instruction before it that matters.
            if self.state.is_empty() {
                let Some(next) = own.next() else { return };
                let matrix = &self.matrices.all[next as usize];
                self.state.push((next, 0));
                (index, banks) = (matrix.index + 1, matrix.behind);
                continue;
            }
            let inst = &code[index];
            touch.set(inst, self.flow.target, banks);
            let mut needed = self.most_missing(|hazard| hazard.distance(touch));
            if index + 1 == code.len() && leaves {
                needed = needed.max(self.most_missing(|hazard| hazard.spacing.matrix));
            }
            if needed > 0 {
                self.missing.push((index, needed));
            }
            self.pass(needed + u8::from(counts(inst)));
            if let Some(matrix) = own.next_if(|matrix| self.matrices.all[*matrix as usize].index == index) {
                let place = self.state.partition_point(|(known, _)| *known < matrix);
                match self.state.get_mut(place).filter(|(known, _)| *known == matrix) {
                    Some((_, since)) => *since = 0,
                    None => self.state.insert(place, (matrix, 0)),
                }
            }
            banks = banks.after(inst, self.flow.target);
            index += 1;
        }
    }

    /// The most instructions that are missing.
    fn most_missing(&self, distance: impl Fn(&Hazard) -> u8) -> u8 {
        let missing = |(matrix, since): &(u32, u8)| distance(self.matrices.hazard(*matrix)).saturating_sub(*since);
        self.state.iter().map(missing).max().unwrap_or(0)
    }

    /// That many instructions go by; what cannot matter any more is forgotten.
    fn pass(&mut self, count: u8) {
        let matrices = self.matrices;
        self.state.retain_mut(|(matrix, since)| {
            *since = since.saturating_add(count);
            *since < matrices.hazard(*matrix).spacing.matrix
        });
    }
}
