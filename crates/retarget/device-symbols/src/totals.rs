//! The needs of functions with everything that they call, callees before callers; recursion; what kernels reach.
//!
//! Invariant: a number that depends on code that is not known is a lower bound, and says so. Of a recursion each frame counts once.
//! Bytes of LDS, which functions may share, are unknown.

use crate::table::{FactEvidence, Function, Number, Resources};
use hotswap_program::bottom_up;
use std::collections::BTreeSet;

/// Sets `total` and `recursive` of all functions by their callees, and by the numbers that the file states.
///
/// Returns the same totals by the code alone.
pub(crate) fn propagate_totals(functions: &mut [Function], stated: &[Option<Resources>]) -> Vec<Resources> {
    let callees: Vec<Vec<u32>> =
        functions.iter().map(|one| one.callees.iter().map(|one| one.function).collect()).collect();
    let groups = bottom_up(functions.len(), |number| callees[number].iter().copied());
    let mut computed = vec![Resources::UNKNOWN; functions.len()];
    let mut complete = vec![false; functions.len()];
    for group in groups {
        let below: BTreeSet<u32> = group.iter().flat_map(|one| &callees[*one as usize]).copied().collect();
        let is_cycle = group.len() > 1 || group.iter().any(|one| below.contains(one));
        let below: Vec<usize> =
            below.into_iter().filter(|one| group.binary_search(one).is_err()).map(|one| one as usize).collect();
        let is_known = group.iter().all(|one| is_resolved(&functions[*one as usize]))
            && below.iter().all(|callee| complete[*callee]);
        let own = group.iter().map(|one| functions[*one as usize].own);
        let total = with_callees(own, below.iter().map(|callee| computed[*callee]), is_known, is_cycle);
        for member in group.iter().map(|one| *one as usize) {
            (computed[member], complete[member]) = (total, is_known);
            functions[member].recursive = match (is_cycle, is_known) {
                (true, _) => Some(true),
                // An unknown callee may call it again.
                (false, is_known) => is_known.then_some(false),
            };
            functions[member].total = stated[member].map_or(total, |stated| joined_resources(stated, total, is_known));
        }
    }
    computed
}

/// Whether every call of a function has a known target in the file.
pub(crate) fn is_resolved(function: &Function) -> bool {
    function.indirect_calls.unresolved.is_empty() && function.imports.is_empty()
}

/// Finds the functions that kernels reach, one kernel after another.
pub(crate) struct ReachWalk<'f> {
    functions: &'f [Function],
    /// For each function one more than the last kernel that reached it: nothing is cleared between kernels.
    seen: Vec<u32>,
}

impl<'f> ReachWalk<'f> {
    pub(crate) fn new(functions: &'f [Function]) -> Self {
        Self { functions, seen: vec![0; functions.len()] }
    }

    /// The functions that one reaches, itself included; and whether these are all.
    pub(crate) fn from(&mut self, start: u32) -> (Vec<u32>, bool) {
        let (mut reached, mut next) = (vec![start], 0);
        self.seen[start as usize] = start + 1;
        while let Some(number) = reached.get(next) {
            next += 1;
            for callee in &self.functions[*number as usize].callees {
                let seen = &mut self.seen[callee.function as usize];
                if std::mem::replace(seen, start + 1) != start + 1 {
                    reached.push(callee.function);
                }
            }
        }
        reached.sort_unstable();
        let complete = reached.iter().all(|one| is_resolved(&self.functions[*one as usize]));
        (reached, complete)
    }
}

/// Stated numbers, and computed ones where none is stated.
pub(crate) fn preferred_resources(stated: Resources, computed: Resources) -> Resources {
    join_each(stated, computed, stated_or_computed)
}

fn stated_or_computed(stated: Number, computed: Number) -> Number {
    if stated.value.is_some() { stated } else { computed }
}

/// Stated numbers, unless the code needs more, or none is stated. Where some callee is not known, the compiler did not know
/// it either: it may need more.
fn joined_resources(stated: Resources, computed: Resources, is_known: bool) -> Resources {
    join_each(stated, computed, |stated, computed| match stated.value {
        Some(value) if computed.value.is_none_or(|needed| needed <= value) => {
            Number { at_least: stated.at_least || !is_known, ..stated }
        }
        _ => computed,
    })
}

/// Two numbers of each kind become one.
fn join_each(one: Resources, other: Resources, join: impl Fn(Number, Number) -> Number) -> Resources {
    Resources {
        vgprs: join(one.vgprs, other.vgprs),
        agprs: join(one.agprs, other.agprs),
        sgprs: join(one.sgprs, other.sgprs),
        scratch: join(one.scratch, other.scratch),
        lds: join(one.lds, other.lds),
        barriers: join(one.barriers, other.barriers),
    }
}

fn with_callees(
    own: impl Iterator<Item = Resources> + Clone,
    callees: impl Iterator<Item = Resources> + Clone,
    is_known: bool,
    is_cycle: bool,
) -> Resources {
    let all = own.clone().chain(callees.clone());
    // In a cycle frames add up without a bound.
    let is_bounded = is_known && !is_cycle;
    let scratch = sum_of_frames(own.clone().map(|one| one.scratch), callees.clone().map(|one| one.scratch), is_bounded);
    Resources {
        vgprs: largest_callee_number(|one| one.vgprs, &all, is_known),
        agprs: largest_callee_number(|one| one.agprs, &all, is_known),
        sgprs: largest_callee_number(|one| one.sgprs, &all, is_known),
        scratch,
        // Variables of LDS may be shared between functions: neither the sum nor the largest is right.
        lds: Number::UNKNOWN,
        barriers: largest_callee_number(|one| one.barriers, &all, is_known),
    }
}

fn largest_callee_number(
    field: fn(&Resources) -> Number,
    all: &std::iter::Chain<impl Iterator<Item = Resources> + Clone, impl Iterator<Item = Resources> + Clone>,
    is_known: bool,
) -> Number {
    largest_number(all.clone().map(|one| field(&one)), !is_known)
}

/// The largest of some numbers with the weakest evidence among them.
fn largest_number(numbers: impl Iterator<Item = Number>, open: bool) -> Number {
    let mut result = Number { value: None, at_least: open, evidence: FactEvidence::CompilerRecord };
    for number in numbers {
        result.at_least |= number.at_least || number.value.is_none();
        result.value = result.value.max(number.value);
        if number.value.is_some() {
            result.evidence = result.evidence.max(number.evidence);
        }
    }
    if result.value.is_some() { result } else { Number::UNKNOWN }
}

/// The frames of functions that call each other, and the largest sum below them: a lower bound where a frame is not known, or where
/// they lack a bound.
fn sum_of_frames(
    own: impl Iterator<Item = Number> + Clone,
    below: impl Iterator<Item = Number> + Clone,
    is_bounded: bool,
) -> Number {
    let all = own.clone().chain(below.clone());
    let total = own.filter_map(|one| one.value).fold(0, u64::saturating_add);
    let largest = below.filter_map(|one| one.value).max().unwrap_or(0);
    let is_open = !is_bounded || all.clone().any(|one| one.at_least || one.value.is_none());
    let value = total.saturating_add(largest);
    if value == 0 && is_open {
        return Number::UNKNOWN;
    }
    let evidence =
        all.filter(|one| one.value.is_some()).map(|one| one.evidence).max().unwrap_or(FactEvidence::CompilerRecord);
    // Each frame begins at a multiple of 16 bytes.
    Number { value: Some(value), at_least: is_open || total > 0 && largest > 0, evidence }
}
