//! Code that no symbol names: instructions there that concern a family, and bytes that may or may not be code.
//!
//! Invariants: such code is decoded as the program has it, because a pass over the bytes from symbol to symbol may
//! start in the middle of an instruction. Bytes that no function claims are decoded from each dword on.

use crate::refusal::Refused;
use crate::scan::Suspects;
use crate::unit::Unit;
use hotswap_code_object::{CodeObject, CodeStarts};
use hotswap_families::Rewriter;
use hotswap_isa::{Entry, Flag, Inst, Isa};
use hotswap_program::{Function, UnknownTransfer};
use std::ops::Range;

/// Bytes of `v_wmma_scale_*` and the like, whose second half reads as the matrix instruction without scales.
const PREFIXED: u8 = 16;

/// Whether the code of a file has dwords that decode as a jump or a call through registers. Without one, only branches
/// from symbols can reach code.
pub(crate) fn has_indirect_transfers(object: &CodeObject<'_>, isa: Isa) -> bool {
    let is_indirect = |entry: &Entry| entry.is(Flag::IndirectBranch) && entry.available(isa);
    let fixed = Entry::all().filter(is_indirect).map(|entry| entry.fixed());
    let fixed: Vec<(u32, u32)> = fixed.map(|(value, mask)| (value as u32, mask as u32)).collect();
    let is_one = |dword: &[u8; 4]| {
        let dword = u32::from_le_bytes(*dword);
        fixed.iter().any(|(value, mask)| dword & mask == *value)
    };
    CodeStarts::of(object).iter().any(|section| section.bytes.as_chunks().0.iter().any(is_one))
}

/// Adds the instructions that concern a family in code that no symbol names.
pub(crate) fn complete(unit: &Unit<'_>, rewriter: &Rewriter, suspects: &mut Suspects) {
    let (sites, reasons) = (suspects.sites.len(), suspects.reasons.len());
    for function in unit.program.functions.iter().filter(|function| is_unnamed(unit, function)) {
        each(unit, function, |at, inst| {
            if rewriter.suspects(inst) {
                suspects.sites.push(at);
            }
            if rewriter.concerns_function(inst) {
                suspects.reasons.push(at);
            }
        });
    }
    for (list, before) in [(&mut suspects.sites, sites), (&mut suspects.reasons, reasons)] {
        if list.len() > before {
            list.sort_unstable();
            list.dedup();
        }
    }
}

/// The instructions that concern a family in bytes that may be code and are not decoded as such.
pub(crate) fn refusals(unit: &Unit<'_>, rewriter: &Rewriter) -> Vec<Refused> {
    let Some(transfer) = unit.coverage.unknown_transfer else { return Vec::new() };
    let mut refused = Vec::new();
    let mut look = |range: Range<u32>| {
        for at in range.step_by(4) {
            let Some(inst) = unit.program.decode(at) else { continue };
            if rewriter.suspects(&inst) || rewriter.concerns_function(&inst) {
                refused.push(Refused::unclaimed(at, &inst, transfer));
            }
        }
    };
    unit.coverage.unclaimed.iter().cloned().for_each(&mut look);
    // If nothing proves that an instruction starts here, another one may start inside it.
    for function in unit.program.functions.iter().filter(|function| is_guessed(unit, function)) {
        each(unit, function, |at, inst| {
            if inst.len() < PREFIXED {
                look(at + 4..at + u32::from(inst.len()));
            }
        });
    }
    refused.sort_by_key(|refused| refused.offset);
    refused
}

/// The number of bytes that no function claims.
pub(crate) fn unclaimed_bytes(unit: &Unit<'_>) -> u64 {
    unit.coverage.unclaimed.iter().map(|range| u64::from(range.end - range.start)).sum()
}

/// Why bytes that no function claims may be code.
pub(crate) fn reason(transfer: UnknownTransfer) -> String {
    let lead = match transfer {
        UnknownTransfer::Instruction(at) => format!("where the jump or call at {at:#x} goes is not known"),
        UnknownTransfer::OtherSection => "code of other sections may lead here".to_owned(),
    };
    format!("no symbol covers it, it cannot be read as a function, and {lead}, so it may be executed")
}

/// Whether a function may hold code that the pass from symbol to symbol did not decode.
fn is_unnamed(unit: &Unit<'_>, function: &Function) -> bool {
    let source = &unit.program.source;
    let mark = function.mark.and_then(|mark| source.marks.get(mark as usize));
    let holds = |range: Range<u32>| {
        let first = source.entries.partition_point(|offset| *offset < range.start);
        source.entries.get(first).is_some_and(|offset| *offset < range.end)
    };
    mark.is_none_or(|mark| mark.name.is_empty()) || holds(function.start..function.end)
}

/// Whether no known reference reaches a function that no symbol names.
fn is_guessed(unit: &Unit<'_>, function: &Function) -> bool {
    let mark = function.mark.and_then(|mark| unit.program.source.marks.get(mark as usize));
    mark.is_some_and(|mark| mark.name.is_empty() && mark.exported)
}

fn each(unit: &Unit<'_>, function: &Function, mut each: impl FnMut(u32, &Inst)) {
    for block in function.blocks() {
        let mut at = block.start;
        while at < block.end {
            let Some(inst) = unit.program.decode(at) else { break };
            each(at, &inst);
            at += u32::from(inst.len());
        }
    }
}
