//! Checks the written file against the input, without knowledge of how it was made.
//!
//! The bytes of the result are parsed again, as a separate program, and compared with the input's. A failed check is a
//! defect of HotSwap, and no file is written then.
//!
//! | checked | in |
//! |---|---|
//! | unchanged instructions are present, in order, and each is one of the target | [`follow`] |
//! | branches, calls, computed addresses and entries have their old targets | [`follow`], [`flow`] |
//! | words with code addresses, and the jumps that may load them, have their old targets | [`flow`] |
//! | references to a function that was moved to a pool branch on to it | [`follow`], [`flow`] |
//! | clauses hold their own members only | [`follow`] |
//! | distances after matrix instructions | [`hazard`] |
//! | copies at the entries of kernels are those of the plan | [`entry_copies`] |
//! | new code overwrites no live or outstanding register and only allocated ones; the bank mode stays | [`scratch`] |
//! | kernels that began at multiples of 256 bytes still do | here; `hotswap-rewrite` checks linked files' descriptors |
//! | descriptors match the counts of the notes (`hotswap-rewrite` has read them, too) | `pipeline/check.rs` |
//! | a second run has nothing to do | `pipeline/check.rs` |

mod branch_targets;
mod entry_copies;
mod flow;
mod follow;
mod hazard;
mod offset_map;
mod plain;
mod scratch;

pub(crate) use offset_map::CodeOffsetMap;
pub(crate) use plain::PlainClassifier;

use crate::changes::InstChanges;
use hotswap_code_object::image::ObjectImage;
use hotswap_code_object::{ObjectKind, SystemSgprShift};
use hotswap_isa::{Inst, Isa};
use hotswap_program::{MarkKind, SectionProgram};
use hotswap_report::{Diagnostic, codes};
use hotswap_rewrite::MovedFunction;
use rayon::prelude::*;
use scratch::ClobberedRegister;
use std::collections::BTreeMap;
use std::ops::Range;

/// A planned change of a unit.
struct PlannedChange<'p> {
    /// Offset of the old instruction.
    offset: u32,
    old: &'p Inst,
    /// The instructions that replace it.
    code: &'p [Inst],
}

/// The planned changes of a unit, ascending by their offsets.
#[derive(Default)]
pub(crate) struct PlannedChanges<'p>(Vec<PlannedChange<'p>>);

impl<'p> PlannedChanges<'p> {
    /// The changes of all functions.
    pub(crate) fn from_functions(changes: impl Iterator<Item = &'p InstChanges> + Clone) -> Self {
        let mut all = Vec::with_capacity(changes.clone().map(InstChanges::len).sum());
        let changes = changes.flat_map(InstChanges::iter);
        all.extend(changes.map(|(offset, old, code)| PlannedChange { offset, old, code }));
        all.sort_by_key(|change| change.offset);
        Self(all)
    }

    fn changes_in(&self, range: Range<u32>) -> &[PlannedChange<'p>] {
        let first = self.0.partition_point(|change| change.offset < range.start);
        let rest = &self.0[first..];
        &rest[..rest.partition_point(|change| change.offset < range.end)]
    }

    fn contains(&self, offset: u32) -> bool {
        self.0.binary_search_by_key(&offset, |change| change.offset).is_ok()
    }

    fn offsets(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|change| change.offset)
    }
}

/// Functions that one task checks: neighbours, so that their code can be freed when it is done.
const FUNCTIONS: usize = 64;

/// A unit before and after.
pub(crate) struct UnitPair<'p, 'a, 'b> {
    pub(crate) old: &'p SectionProgram<'a>,
    pub(crate) new: &'p SectionProgram<'b>,
    pub(crate) plan: PlannedChanges<'p>,
    /// Named data between the old instructions; see [`data`].
    pub(crate) data: Vec<Range<u32>>,
    pub(crate) images: (&'p ObjectImage<'a>, &'p ObjectImage<'b>),
    pub(crate) target: Isa,
    pub(crate) plain: &'p PlainClassifier,
    /// Moved functions, by their old offsets.
    pub(crate) moved: &'p [MovedFunction],
    /// Kernels whose system SGPRs are copied at their entries.
    pub(crate) shifts: &'p [SystemSgprShift],
}

impl UnitPair<'_, '_, '_> {
    /// The required offset of a symbol at an old offset, if functions were moved.
    pub(crate) fn moved_to(&self, old: u32) -> u32 {
        moved_to(self.moved, old)
    }

    /// The number of branches at the old positions of moved functions: they are code without a symbol.
    fn left_behind(&self) -> usize {
        let marks = self.new.program.source.marks.iter().filter(|mark| mark.name.is_empty());
        marks.filter(|mark| is_moved_from(u64::from(mark.offset), self.moved)).count()
    }

    /// The data that starts in a range of old offsets, or overlaps its start.
    fn data_in(&self, range: Range<u32>) -> &[Range<u32>] {
        let first = self.data.partition_point(|data| data.end <= range.start);
        let rest = &self.data[first..];
        &rest[..rest.partition_point(|data| data.start < range.end)]
    }
}

fn is_moved_from(at: u64, moved: &[MovedFunction]) -> bool {
    moved.iter().any(|one| (one.from..one.from + one.size).contains(&at))
}

/// The new offset if functions were moved and nothing else changed.
pub(crate) fn moved_to(moved: &[MovedFunction], old: u32) -> u32 {
    MovedFunction::moved_offset(moved, u64::from(old)).map_or(old, |place| place as u32)
}

/// The named data of a unit, ascending. Overlapping ranges are merged.
pub(crate) fn merged_data(unit: &SectionProgram<'_>) -> Vec<Range<u32>> {
    let mut merged: Vec<Range<u32>> = Vec::new();
    for data in unit.program.named_data() {
        match merged.last_mut().filter(|last| data.start <= last.end) {
            Some(last) => last.end = last.end.max(data.end),
            None => merged.push(data),
        }
    }
    merged
}

/// A difference from the plan: the offset in the new section, and a description.
type PlanDifference = (u32, String);

/// Checks one unit, and returns the map from old to new offsets.
///
/// # Errors
/// `VERIFY_FAILED` with function, section and offset of the first fault.
pub(crate) fn verify_unit(pair: &UnitPair<'_, '_, '_>) -> Result<CodeOffsetMap, Diagnostic> {
    check_kernel_alignment(pair).map_err(|one| plan_difference_error(one, pair.new))?;
    let followed = follow::follow_unit(pair).map_err(|one| plan_difference_error(one, pair.new))?;
    flow::compare_address_words(pair, &followed).map_err(|one| plan_difference_error(one, pair.new))?;
    let functions: Vec<usize> = (0..pair.old.program.functions.len()).collect();
    // All functions are checked, then the first fault in code order is reported: thread timing must not show.
    let functions = functions.par_iter().with_min_len(FUNCTIONS).with_max_len(FUNCTIONS);
    let checked: Vec<Result<Vec<ClobberedRegister>, PlanDifference>> =
        functions.map(|number| verify_function(pair, &followed, *number)).collect();
    let mut held: Vec<ClobberedRegister> = Vec::new();
    for one in checked {
        held.extend(one.map_err(|one| plan_difference_error(one, pair.new))?);
    }
    scratch::never_read(pair, &followed, &held).map_err(|one| plan_difference_error(one, pair.new))?;
    Ok(followed)
}

/// Verifies the old function of that number; returns the registers that need a check of the whole unit.
fn verify_function(
    pair: &UnitPair<'_, '_, '_>,
    followed: &CodeOffsetMap,
    number: usize,
) -> Result<Vec<ClobberedRegister>, PlanDifference> {
    flow::compare_function(pair, followed, number)?;
    let Some(new) = changed_function(pair, followed, number) else { return Ok(Vec::new()) };
    hazard::check_function(pair, followed, new)?;
    scratch::check_function(pair, followed, number, new)
}

fn plan_difference_error((at, what): PlanDifference, pair_new: &SectionProgram<'_>) -> Diagnostic {
    let program = &pair_new.program;
    let error = Diagnostic::error(codes::VERIFY_FAILED, what).in_entry(pair_new.name).at_offset(u64::from(at));
    let function = program.function_at(at).map(|(_, function)| program.name(function));
    Diagnostic { place: hotswap_report::DiagnosticLocation { kernel: function, ..error.place.clone() }, ..error }
}

/// The hardware starts kernels at multiples of 256 bytes, whatever descriptors say.
fn check_kernel_alignment(pair: &UnitPair<'_, '_, '_>) -> Result<(), PlanDifference> {
    if pair.images.0.kind == ObjectKind::Linked {
        return Ok(());
    }
    let (old, new) = (misaligned_kernels(pair.old), misaligned_kernels(pair.new));
    match new.into_iter().filter(|(name, _)| !old.contains_key(name)).map(|(_, offset)| offset).min() {
        Some(offset) => Err((offset, "the kernel does not begin at a multiple of 256 bytes".to_owned())),
        None => Ok(()),
    }
}

fn misaligned_kernels(unit: &SectionProgram<'_>) -> BTreeMap<String, u32> {
    let kernels = unit.program.source.marks.iter().filter(|mark| matches!(mark.kind, MarkKind::Kernel(_)));
    let crooked = kernels.filter(|mark| !mark.offset.is_multiple_of(256));
    crooked.map(|mark| (mark.name.to_string(), mark.offset)).collect()
}

/// The number of the new function, if the old one is changed.
fn changed_function(pair: &UnitPair<'_, '_, '_>, followed: &CodeOffsetMap, number: usize) -> Option<usize> {
    let function = &pair.old.program.functions[number];
    pair.plan.changes_in(function.start..function.end).first()?;
    Some(pair.new.program.function_at(followed.new_start(function.start)?)?.0)
}
