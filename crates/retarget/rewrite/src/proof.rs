//! The proof that code may move: in a file that was linked without its relocations, all code that may depend on
//! distances must be explained.
//!
//! A distance may be anywhere if the file states nothing about it. It does harm only where execution depends on it: in
//! an instruction that an entry reaches. So every reached instruction that reads the program counter must be explained
//! by the sum that follows it. Every computed address of code must stay an address of code. Every jump with an unknown
//! target must take a whole address from memory: those are the loader's, or results of such sums. Jumps by tables, for
//! which the program model has edges, do.
//!
//! Assumed, because neither LLVM nor assemblers emit it for AMD GPUs: distances to code as plain numbers in data that
//! reach a jump through the arguments of a function do not occur.

use crate::fix::SectionOffset;
use crate::inputs::{LentProgram, MovableTail};
use crate::known::KnownProgram;
use crate::plan::CodePlan;
use crate::scan::PcComputation;
use crate::{distances, refuse_layout};
use hotswap_code_object::image::{ImageLayout, ObjectImage};
use hotswap_program::{CallDestination, Function, PcValue, ProblemReason, Program};
use hotswap_report::Diagnostic;
use std::collections::BTreeMap;

/// Something that depends on distances and cannot be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unrelocatable {
    /// Offset in the section.
    pub(crate) at: u64,
    pub(crate) function: String,
    pub(crate) why: &'static str,
    /// It may depend on the position of data, too.
    pub(crate) is_about_data: bool,
}

/// Where bytes move, everything must be explained that may depend on distances, except for the pool, if
/// only the pool moves.
pub(crate) fn check_explained(
    image: &ObjectImage<'_>,
    layout: &ImageLayout,
    known: &BTreeMap<usize, KnownProgram<'_>>,
    (plans, free): (&[CodePlan<'_>], &[MovableTail]),
) -> Result<(), Diagnostic> {
    let mut placed = image.sections.iter().zip(&layout.addresses);
    let is_still = placed.clone().all(|(part, new)| part.address == *new);
    if is_still && plans.iter().all(|plan| plan.map.is_still()) {
        return Ok(());
    }
    // Loaders find their own sections; an address of data or code may be anywhere in code.
    let data_stays = placed.all(|(part, new)| part.address == *new || !(part.is_code() || distances::is_data(part)));
    let is_pooled = plans
        .iter()
        .all(|plan| start_of_tail(free, plan.section).map_or(plan.map.is_still(), |at| plan.map.is_still_to(at)));
    for plan in plans {
        let Some(known) = known.get(&plan.section) else { continue };
        let mut found = find_unrelocatable(known, plan);
        if is_pooled {
            let from = start_of_tail(free, plan.section).unwrap_or(u64::MAX);
            found.retain(|one| one.at >= from || one.is_about_data && !data_stays);
        }
        if let Some(first) = found.first() {
            return Err(layout_refusal(first, found.len() - 1, plan.file));
        }
    }
    Ok(())
}

/// The offset from which on a section may move.
fn start_of_tail(free: &[MovableTail], section: usize) -> Option<u64> {
    free.iter().find(|tail| tail.section == section).map(|tail| tail.from)
}

/// The refusal for the first of several places in the section at `file`.
fn layout_refusal(first: &Unrelocatable, others: usize, file: u64) -> Diagnostic {
    let more = match others {
        0 => String::new(),
        more => format!(" (and {more} more such places)"),
    };
    let what = format!(
        "`{}` may depend on where code is, and the file was linked without its relocations: {}{more}",
        first.function, first.why
    );
    refuse_layout(file + first.at, what).advise("link with -Wl,--emit-relocs")
}

/// Everything in a section that cannot be explained, with the findings of its plan.
pub(crate) fn find_unrelocatable(known: &KnownProgram<'_>, plan: &CodePlan<'_>) -> Vec<Unrelocatable> {
    let program = known.program();
    let mut found = Vec::new();
    for function in &program.functions {
        unknown_transfers(program, function, &mut |one, other, third| {
            add_unrelocatable_site(one, other, third, &mut found, program, function)
        });
        if function.lets_addresses_escape() {
            add_unrelocatable_site(
                function.start,
                "an address of an instruction is lost from view",
                true,
                &mut found,
                program,
                function,
            );
        }
        for value in &function.pc_values {
            if !is_explained(program, &plan.computations, value.pc, value.low, value.to.at) {
                add_unrelocatable_site(
                    value.low,
                    "it is not known how an address comes of the program counter",
                    true,
                    &mut found,
                    program,
                    function,
                );
            }
        }
        let range = u64::from(function.start)..u64::from(function.end);
        for at in plan.unexplained.iter().filter(|at| range.contains(*at)) {
            add_unrelocatable_site(
                *at as u32,
                "it is not known what it computes from the program counter",
                true,
                &mut found,
                program,
                function,
            );
        }
    }
    found
}

fn add_unrelocatable_site(
    at: u32,
    why: &'static str,
    is_about_data: bool,
    found: &mut Vec<Unrelocatable>,
    program: &Program<'_>,
    function: &Function,
) {
    found.push(Unrelocatable { at: u64::from(at), function: program.name(function), why, is_about_data });
}

/// In a file with relocations: a distance without one is written once, so every path that adds it must come
/// to the same place.
pub(crate) fn check_sums(
    plans: &[CodePlan<'_>],
    lent: &[LentProgram<'_>],
    relocated: &[SectionOffset],
) -> Result<(), Diagnostic> {
    for plan in plans.iter().filter(|plan| !plan.map.is_still()) {
        let program = lent.iter().find(|lent| lent.section == plan.section).map(|lent| lent.program);
        let functions = program.into_iter().flat_map(|program| program.functions.iter().map(move |one| (program, one)));
        for (program, function) in functions {
            let wrong = function.pc_values.iter().find(|value| adds_otherwise(program, plan, value, relocated));
            if let Some(value) = wrong {
                let what = format!("paths of `{}` add a distance to different places", program.name(function));
                return Err(
                    refuse_layout(plan.file + u64::from(value.low), what).advise("compile the kernel for the target")
                );
            }
        }
    }
    Ok(())
}

/// Whether a value comes from a get-PC whose distance is written, and is not its sum.
fn adds_otherwise(program: &Program<'_>, plan: &CodePlan<'_>, value: &PcValue, relocated: &[SectionOffset]) -> bool {
    let found = plan.computations.binary_search_by_key(&u64::from(value.pc), |one| one.at).ok();
    let is_written = found.is_some_and(|found| {
        let place = SectionOffset { section: plan.section, offset: plan.computations[found].low };
        relocated.binary_search(&place).is_err()
    });
    is_written && !is_explained(program, &plan.computations, value.pc, value.low, value.to.at)
}

/// Adds the jumps and calls of a function whose target address may be computed from a distance.
fn unknown_transfers(program: &Program<'_>, function: &Function, add: &mut impl FnMut(u32, &'static str, bool)) {
    for problem in &function.problems {
        match problem.reason {
            // The caller put a whole address there, and nothing is executed past the end.
            ProblemReason::UnknownReturn | ProblemReason::LeavesSection => {}
            reason if reason.is_unknown_jump() && program.comes_whole(function, problem.offset) => {}
            // After bytes that cannot be decoded the use of the program counter is unknown.
            reason => add(problem.offset, reason.text(), !reason.is_unknown_jump()),
        }
    }
    for call in &function.calls {
        if call.callee == CallDestination::Unknown && !program.comes_whole(function, call.offset) {
            add(call.offset, "the address of the call is computed from what is not known", false);
        }
    }
}

/// Whether the value is the result of the computation of its program counter, or at the same distance from it in data.
fn is_explained(program: &Program<'_>, computations: &[PcComputation], pc: u32, low: u32, to: u64) -> bool {
    let found = computations.binary_search_by_key(&u64::from(pc), |one| one.at);
    let Some(one) = found.ok().map(|found| &computations[found]) else { return false };
    let source = &program.source;
    let target = source.address.wrapping_add(one.base).wrapping_add(one.distance);
    let is_code =
        |address: u64| address.checked_sub(source.address).is_some_and(|offset| offset < source.bytes.len() as u64);
    let is_own = one.adds_at(u64::from(low)) && to == target;
    is_own || !is_code(target) && !is_code(to) && u64::from(low) > one.at
}
