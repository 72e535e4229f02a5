//! `wmma_hazard`: distances between matrix instructions and what touches their registers.
//!
//! The target needs more vector instructions between them than the source did ([`Spacing`](crate::code::Spacing)). Missing
//! ones become `v_nop`. Distances are counted over every path: a state holds for each matrix instruction that can still
//! matter the fewest instructions since it; where paths meet, the fewer count. Where execution goes to code that is not
//! known (calls, returns), everything that can still matter is waited out.

use crate::code::{Block, Flow, FunctionFamily, Hazard, Insertion, Refusal, Spacing, Touch, counts, no_operation};
use crate::registry::{Apply, Registry};
use crate::table::slot;
use hotswap_isa::{Entry, Flag, Inst};
use std::collections::BTreeMap;
use std::collections::VecDeque;

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_wmma_hazard_patch(registry: &mut Registry) {
    registry.bind(
        slot::WMMA_HAZARD,
        Apply::Function(FunctionFamily { entries: is_matrix, concerns: needs_distance, insertions }),
    );
}

/// Matrix instructions that can still matter, by block and number, with the instructions that count since them.
type State = BTreeMap<(usize, usize), u8>;

fn insertions(flow: &Flow<'_>) -> Result<Vec<Insertion>, Refusal> {
    let hazards = hazards(flow);
    if hazards.is_empty() {
        return Ok(Vec::new());
    }
    let before = fixed_point(flow, &hazards);
    let nop = no_operation(flow.target)?;
    let mut all = Vec::new();
    for (number, state) in before.iter().enumerate() {
        let mut state = state.clone();
        through(flow, &hazards, number, &mut state, |before, missing| {
            all.push(Insertion { block: number, before, code: vec![nop; usize::from(missing)] });
        });
    }
    Ok(all)
}

fn is_matrix(entry: Entry) -> bool {
    entry.is(Flag::Wmma) || entry.is(Flag::Swmmac)
}

fn needs_distance(inst: &Inst) -> bool {
    Spacing::after(inst).is_some()
}

fn hazards(flow: &Flow<'_>) -> BTreeMap<(usize, usize), Hazard> {
    let mut hazards = BTreeMap::new();
    for (number, block) in flow.blocks.iter().enumerate() {
        let mut banks = block.banks;
        for (index, inst) in block.code.iter().enumerate() {
            if let Some(hazard) = Hazard::of(inst, flow.target, banks) {
                hazards.insert((number, index), hazard);
            }
            banks = banks.after(inst, flow.target);
        }
    }
    hazards
}

/// The state before each block. A state only ever loses distance, so this ends.
fn fixed_point(flow: &Flow<'_>, hazards: &BTreeMap<(usize, usize), Hazard>) -> Vec<State> {
    let mut before = vec![State::new(); flow.blocks.len()];
    let mut work: VecDeque<usize> = (0..flow.blocks.len()).collect();
    let mut waiting = vec![true; flow.blocks.len()];
    while let Some(number) = work.pop_front() {
        waiting[number] = false;
        let mut state = before[number].clone();
        through(flow, hazards, number, &mut state, |_, _| {});
        for &next in flow.blocks[number].successors {
            let Some(known) = before.get_mut(next) else { continue };
            if join(known, &state) && !waiting[next] {
                waiting[next] = true;
                work.push_back(next);
            }
        }
    }
    before
}

/// Takes over what is nearer; says whether anything was.
fn join(known: &mut State, other: &State) -> bool {
    let mut changed = false;
    for (&hazard, &distance) in other {
        let old = known.entry(hazard).or_insert(u8::MAX);
        changed |= distance < *old;
        *old = distance.min(*old);
    }
    changed
}

/// Goes through a block; `missing` gets the number of the instruction and how many must come before it.
fn through(
    flow: &Flow<'_>,
    hazards: &BTreeMap<(usize, usize), Hazard>,
    number: usize,
    state: &mut State,
    mut missing: impl FnMut(usize, u8),
) {
    // Most blocks have no matrix instruction, nor one before them that matters.
    if state.is_empty() && hazards.range((number, 0)..(number + 1, 0)).next().is_none() {
        return;
    }
    let Block { code, leaves, mut banks, .. } = flow.blocks[number].clone();
    for (index, inst) in code.iter().enumerate() {
        // Most of the code has no matrix instruction before it that matters.
        let mut needed = match state.is_empty() {
            true => 0,
            false => {
                let touch = Touch::of(inst, flow.target, banks);
                most_missing(state, |hazard| hazards[hazard].distance(&touch))
            }
        };
        if index + 1 == code.len() && leaves {
            needed = needed.max(most_missing(state, |hazard| hazards[hazard].spacing.matrix));
        }
        if needed > 0 {
            missing(index, needed);
            pass(state, hazards, needed);
        }
        if counts(inst) {
            pass(state, hazards, 1);
        }
        if hazards.contains_key(&(number, index)) {
            state.insert((number, index), 0);
        }
        banks = banks.after(inst, flow.target);
    }
}

/// The most instructions that are missing.
fn most_missing(state: &State, distance: impl Fn(&(usize, usize)) -> u8) -> u8 {
    state.iter().map(|(hazard, since)| distance(hazard).saturating_sub(*since)).max().unwrap_or(0)
}

/// That many instructions go by; what cannot matter any more is forgotten.
fn pass(state: &mut State, hazards: &BTreeMap<(usize, usize), Hazard>, count: u8) {
    state.retain(|hazard, since| {
        *since = since.saturating_add(count);
        *since < hazards[hazard].spacing.matrix
    });
}
