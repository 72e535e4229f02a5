//! Candidates in code that no symbol names.
//!
//! Invariants: such code is decoded as the program has it, because a pass over the bytes from symbol to symbol may
//! start in the middle of an instruction.

use super::Candidates;
use hotswap_families::FamilyRewriter;
use hotswap_program::{Function, SectionProgram};
use std::ops::Range;

/// Adds the instructions that concern a family in code that no symbol names.
pub(crate) fn add_unnamed(unit: &SectionProgram<'_>, rewriter: &FamilyRewriter, candidates: &mut Candidates) {
    let (sites, reasons) = (candidates.sites.len(), candidates.reasons.len());
    let functions = unit.program.functions.iter().enumerate();
    for (number, _) in functions.filter(|(_, function)| is_unnamed(unit, function)) {
        unit.each_instruction(number, |at, inst, _| {
            if rewriter.concerns_instruction(inst) {
                candidates.sites.push(at);
            }
            let following = unit.program.source.bytes.get(at as usize + usize::from(inst.len())..).unwrap_or_default();
            if rewriter.concerns_function_with(inst, unit.isa(), following) {
                candidates.reasons.push(at);
            }
        });
    }
    for (list, before) in [(&mut candidates.sites, sites), (&mut candidates.reasons, reasons)] {
        if list.len() > before {
            list.sort_unstable();
            list.dedup();
        }
    }
}

/// Whether a function may hold code that the pass from symbol to symbol did not decode.
fn is_unnamed(unit: &SectionProgram<'_>, function: &Function) -> bool {
    let source = &unit.program.source;
    let mark = function.mark.and_then(|mark| source.marks.get(mark as usize));
    mark.is_none_or(|mark| mark.name.is_empty()) || has_entry_within(function.start..function.end, source)
}

fn has_entry_within(range: Range<u32>, source: &hotswap_program::CodeSource<'_>) -> bool {
    let first = source.entries.partition_point(|offset| *offset < range.start);
    source.entries.get(first).is_some_and(|offset| *offset < range.end)
}
