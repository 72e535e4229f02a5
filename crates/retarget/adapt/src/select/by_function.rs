//! The candidates of a section, function by function.
//!
//! Invariants: candidates after a function, without a symbol of their own, belong to it if its control flow is unknown.

use super::FUNCTIONS;
use super::function::{self, FunctionOffsets, FunctionRewrite};
use crate::config::RewriteConfig;
use crate::prescan::Candidates;
use crate::registers::budget::KernelBudget;
use hotswap_program::{Function, MarkKind, Program, SectionProgram, SectionSymbol};
use rayon::prelude::*;
use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

/// Rewrites all functions with candidates in parallel. The results are in the order of the code.
pub(crate) fn each_function<T: Send>(
    unit: &SectionProgram<'_>,
    candidates: &Candidates,
    kernels: &[KernelBudget],
    config: &RewriteConfig<'_>,
    result: impl Fn(FunctionRewrite) -> T + Sync,
) -> Vec<T> {
    let early = &candidates.early;
    by_function(&unit.program, candidates)
        .par_iter()
        .with_max_len(FUNCTIONS)
        .map(|(number, [sites, reasons])| {
            let Function { start, end, .. } = unit.program.functions[*number];
            let early = &early[early.partition_point(|offset| *offset < start)..];
            let early = &early[..early.partition_point(|offset| *offset < end)];
            let (sites, reasons) = (&candidates.sites[sites.clone()], &candidates.reasons[reasons.clone()]);
            let offsets = FunctionOffsets { sites, reasons, early };
            result(function::rewrite_function(config, unit, kernels, *number, &offsets))
        })
        .collect()
}

/// The number of a function, and the ranges of its sites and reasons in their lists.
type FunctionCandidates = (usize, [Range<usize>; 2]);

/// Functions by number, each with its sites and reasons.
fn by_function(program: &Program<'_>, candidates: &Candidates) -> Vec<FunctionCandidates> {
    let (sites, reasons) = rayon::join(
        || group_by_function(program, &candidates.sites),
        || group_by_function(program, &candidates.reasons),
    );
    let mut functions = Vec::with_capacity(sites.len().max(reasons.len()));
    let (mut sites, mut reasons) = (sites.into_iter().peekable(), reasons.into_iter().peekable());
    while let Some(number) =
        next_function_number(&mut sites).into_iter().chain(next_function_number(&mut reasons)).min()
    {
        functions.push((number, [take_function_run(&mut sites, number), take_function_run(&mut reasons, number)]));
    }
    functions
}

fn next_function_number(runs: &mut Peekable<IntoIter<FunctionRun>>) -> Option<usize> {
    runs.peek().map(|(number, _)| *number)
}

fn take_function_run(runs: &mut Peekable<IntoIter<FunctionRun>>, number: usize) -> Range<usize> {
    runs.next_if(|(other, _)| *other == number).map_or(0..0, |(_, range)| range)
}

/// The number of a function, and the range of the offsets that are in it, or after it without a symbol of their own.
type FunctionRun = (usize, Range<usize>);

/// Groups the offsets, which are in ascending order, by function. Functions are in ascending order, too.
fn group_by_function(program: &Program<'_>, offsets: &[u32]) -> Vec<FunctionRun> {
    let mut runs: Vec<FunctionRun> = Vec::new();
    let mut at = 0;
    while let Some(offset) = offsets.get(at) {
        // All offsets in one function at once.
        let found = program.function_at(*offset);
        let count = match found {
            Some((_, function)) => offsets[at..].iter().take_while(|other| **other < function.end).count(),
            None => 1,
        };
        let end = at + count;
        if let Some(number) = found.map(|(number, _)| number).or_else(|| function_before(program, *offset)) {
            match runs.last_mut().filter(|(last, _)| *last == number) {
                Some((_, range)) => range.end = end,
                None => runs.push((number, at..end)),
            }
        }
        at = end;
    }
    runs
}

/// The function before an offset: code after it without a symbol of its own is in question if that function is.
fn function_before(program: &Program<'_>, offset: u32) -> Option<usize> {
    let before = program.functions.partition_point(|function| function.start <= offset).checked_sub(1)?;
    let function = &program.functions[before];
    // A function that does not exist counts as closed.
    let marks = &program.source.marks;
    let next = &marks[marks.partition_point(|mark| mark.offset < function.end)..];
    let mut between = next.iter().take_while(|mark| mark.offset <= offset);
    (!function.is_closed() && !between.any(is_code_mark)).then_some(before)
}

fn is_code_mark(mark: &SectionSymbol<'_>) -> bool {
    matches!(mark.kind, MarkKind::Kernel(_) | MarkKind::Function)
}
