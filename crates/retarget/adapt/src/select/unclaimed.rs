//! Bytes that may or may not be code: those that no function claims, and the insides of instructions of functions that
//! nothing is known to reach.
//!
//! Invariants: they are decoded from each dword on. An instruction there that concerns a family is refused.

use crate::refusal::FunctionRefusal;
use hotswap_families::FamilyRewriter;
use hotswap_program::{Function, SectionProgram};

/// Bytes of `v_wmma_scale_*` and the like, whose second half reads as the matrix instruction without scales.
const PREFIXED: u8 = 16;

/// The instructions that concern a family in bytes that may be code and are not decoded as such.
pub(crate) fn refuse_unclaimed(unit: &SectionProgram<'_>, rewriter: &FamilyRewriter) -> Vec<FunctionRefusal> {
    let Some(transfer) = unit.coverage.unknown_transfer else { return Vec::new() };
    let mut ranges = unit.coverage.unclaimed.clone();
    // If nothing proves that an instruction starts here, another one may start inside it.
    for (number, _) in unit.program.functions.iter().enumerate().filter(|(_, function)| is_guessed(unit, function)) {
        unit.each_instruction(number, |at, inst, _| {
            if inst.len() < PREFIXED {
                ranges.push(at + 4..at + u32::from(inst.len()));
            }
        });
    }
    let mut refused = Vec::new();
    for at in ranges.into_iter().flat_map(|range| range.step_by(4)) {
        let Some(inst) = unit.program.decode(at) else { continue };
        let end = at as usize + usize::from(inst.len());
        let following = unit.program.source.bytes.get(end..).unwrap_or_default();
        if rewriter.concerns_instruction(&inst) || rewriter.concerns_function_with(&inst, unit.isa(), following) {
            refused.push(FunctionRefusal::unclaimed_site(at, &inst, transfer));
        }
    }
    refused.sort_by_key(|refused| refused.offset);
    refused
}

/// The number of bytes that no function claims.
pub(crate) fn unclaimed_bytes(unit: &SectionProgram<'_>) -> u64 {
    unit.coverage.unclaimed.iter().map(|range| u64::from(range.end - range.start)).sum()
}

/// Whether no known reference reaches a function that no symbol names.
fn is_guessed(unit: &SectionProgram<'_>, function: &Function) -> bool {
    let mark = function.mark.and_then(|mark| unit.program.source.marks.get(mark as usize));
    mark.is_some_and(|mark| mark.name.is_empty() && mark.exported)
}
