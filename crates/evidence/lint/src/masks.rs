//! Loads for a cluster require 0 in the low half of M0, loads of tensors in that of their second descriptor: the first
//! stepping hangs when several workgroups are named.
//!
//! Invariants: a half is 0 only if it is on every path; nothing is known at the start of a function and after calls.

use crate::finding::{LintFinding, MULTICAST_MASK};
use crate::unit::LintUnit;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Feature, Inst, Isa, Name, OperandValue};
use hotswap_program::BlockExit;
use std::collections::BTreeSet;

/// Registers whose low half is 0: scalar ones by number, and M0.
type ZeroLowHalves = BTreeSet<u16>;

const M0: u16 = 125;

pub(crate) fn check_masks(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    if !unit.isa().has(Feature::Gfx1250Strict) {
        return;
    }
    for number in 0..unit.program.functions.len() {
        let mut asks = false;
        unit.each_instruction(number, |_, _, inst, _| asks |= required_mask(inst, unit.isa()).is_some());
        if asks {
            check_function(unit, number, findings);
        }
    }
}

/// The register that must have a mask of 0.
fn required_mask(inst: &Inst, isa: Isa) -> Option<u16> {
    match inst.mnemonic() {
        "tensor_load_to_lds" => match inst.operand(isa, Name::Vaddr1) {
            Some(OperandValue::Reg(reg)) if reg.file == RegFile::Sgpr => Some(reg.index),
            _ => Some(u16::MAX),
        },
        name if name.starts_with("cluster_load_") => Some(M0),
        _ => None,
    }
}

fn check_function(unit: &LintUnit<'_>, number: usize, findings: &mut Vec<LintFinding>) {
    let function = &unit.program.functions[number];
    let mut before: Vec<Option<ZeroLowHalves>> = vec![None; function.block_count()];
    let mut work = Vec::new();
    for entry in &function.entries {
        if let Some(block) = function.block_at(entry.offset) {
            before[block] = Some(ZeroLowHalves::new());
            work.push(block);
        }
    }
    while let Some(block) = work.pop() {
        let mut zeros = before[block].clone().unwrap_or_default();
        for (_, inst, _) in unit.block_code(number, block) {
            track_zeros(&inst, unit.isa(), &mut zeros);
        }
        if function.exit(block) == BlockExit::Call {
            zeros.clear();
        }
        for next in function.successors(block).iter().map(|next| *next as usize) {
            let joined: ZeroLowHalves = match &before[next] {
                None => zeros.clone(),
                Some(known) => known.intersection(&zeros).copied().collect(),
            };
            if before[next].as_ref() != Some(&joined) {
                before[next] = Some(joined);
                work.push(next);
            }
        }
    }
    for (block, zeros) in before.into_iter().enumerate() {
        let Some(mut zeros) = zeros else { continue };
        for (at, inst, _) in unit.block_code(number, block) {
            if required_mask(&inst, unit.isa()).is_some_and(|reg| !zeros.contains(&reg)) {
                let what = "the multicast mask is not 0 on every path";
                findings.push(LintFinding::at_offset(&MULTICAST_MASK, unit, at, what));
            }
            track_zeros(&inst, unit.isa(), &mut zeros);
        }
    }
}

fn index(reg: Reg) -> Option<u16> {
    match reg.as_special() {
        Some(Special::M0) => Some(M0),
        _ => (reg.file == RegFile::Sgpr).then_some(reg.index),
    }
}

fn track_zeros(inst: &Inst, isa: Isa, zeros: &mut ZeroLowHalves) {
    let clears = clears_low_half(inst, isa, zeros);
    for effect in inst.writes(isa) {
        let Some(first) = index(effect.reg) else { continue };
        let written = first..first + u16::from(effect.reg.count);
        zeros.retain(|index| !written.contains(index));
    }
    if let Some(OperandValue::Reg(reg)) = inst.operand(isa, Name::Sdst).filter(|_| clears) {
        zeros.extend(index(reg));
    }
}

/// Whether the low half of the result is 0.
fn clears_low_half(inst: &Inst, isa: Isa, zeros: &ZeroLowHalves) -> bool {
    let [first_is_zero, second_is_zero] =
        [Name::Src0, Name::Src1].map(|name| has_zero_low_half(inst, isa, zeros, name));
    match inst.mnemonic() {
        "s_mov_b32" => first_is_zero,
        "s_mov_b64" => first_is_zero,
        "s_and_b32" => first_is_zero || second_is_zero,
        "s_or_b32" => first_is_zero && second_is_zero,
        "s_pack_hh_b32_b16" | "s_pack_hl_b32_b16" => {
            constant_operand(inst, isa, Name::Src0).is_some_and(|value| value >> 16 == 0)
        }
        "s_pack_ll_b32_b16" | "s_pack_lh_b32_b16" => first_is_zero,
        "s_lshl_b32" => constant_operand(inst, isa, Name::Src1).is_some_and(|shift| shift & 31 >= 16) || first_is_zero,
        _ => false,
    }
}

/// Whether the low half of a source is 0.
fn has_zero_low_half(inst: &Inst, isa: Isa, zeros: &ZeroLowHalves, name: Name) -> bool {
    match inst.operand(isa, name) {
        Some(OperandValue::Reg(reg)) => index(reg).is_some_and(|index| zeros.contains(&index)),
        _ => constant_operand(inst, isa, name).is_some_and(|value| value & 0xffff == 0),
    }
}

/// The value of an operand that is a number.
pub(crate) fn constant_operand(inst: &Inst, isa: Isa, name: Name) -> Option<u32> {
    match inst.operand(isa, name) {
        Some(OperandValue::Inline(inline)) => Some(inline.value as u32),
        Some(OperandValue::Literal(literal)) => Some(literal.value as u32),
        _ => None,
    }
}
