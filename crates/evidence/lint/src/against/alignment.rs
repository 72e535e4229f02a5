//! Unchanged accesses to LDS at two addresses: the first stepping gives wrong data where an element is not aligned, so
//! the alignment of each must be proven.
//!
//! Each block is walked forwards, with the low bits of every vector register that are known to be zero in all active
//! lanes. Nothing is known at the start of a block, after a write of EXEC or of the bank mode, and for registers that
//! DPP or SDWA write: other lanes keep their values.

use crate::finding::{ALIGNMENT, LintFinding};
use crate::masks::constant_operand;
use crate::unit::LintUnit;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::bank_role;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Class, Feature, Flag, Inst, Isa, Name, OperandValue};
use std::collections::BTreeMap;

/// Low bits of registers that are zero.
type KnownZeroBits = BTreeMap<u16, u32>;

/// Checks the code of the original at unchanged offsets, for a target that needs aligned elements.
pub(super) fn check_alignment(
    old: &LintUnit<'_>,
    target: Isa,
    stays: impl Fn(u32) -> bool,
    findings: &mut Vec<LintFinding>,
) {
    if !target.has(Feature::Gfx1250Strict) {
        return;
    }
    let isa = old.isa();
    for (number, function) in old.program.functions.iter().enumerate() {
        for block in 0..function.block_count() {
            let mut zeros = KnownZeroBits::new();
            for (at, inst, banks) in old.block_code(number, block) {
                if let Some(element) = element_size(&inst, isa).filter(|_| stays(at)) {
                    let address = whole_register(&inst, isa, banks, Name::Addr);
                    let known = address.and_then(|reg| zeros.get(&reg.index)).copied().unwrap_or(0);
                    if 1 << known.min(8) < element {
                        let what = format!(
                            "the access at two addresses stays, and its address is not proven to be a multiple of {element}"
                        );
                        findings.push(LintFinding::at_offset(&ALIGNMENT, old, at, what));
                    }
                }
                track_zeros(&inst, isa, banks, &mut zeros);
            }
        }
    }
}

/// Bytes of an element of an access at two addresses: it has two offsets, one data register or pair for each element, and
/// a result of both.
fn element_size(inst: &Inst, isa: Isa) -> Option<u32> {
    if inst.class() != Some(Class::Ds) || inst.raw(Name::Offset0).is_none() || inst.raw(Name::Offset1).is_none() {
        return None;
    }
    let dwords = operand_dwords(inst, isa, Name::Data0);
    let dwords = dwords.or_else(|| Some(operand_dwords(inst, isa, Name::Vdst)? / 2))?;
    Some(4 * dwords)
}

/// The number of registers that an operand names.
fn operand_dwords(inst: &Inst, isa: Isa, name: Name) -> Option<u32> {
    match inst.operand(isa, name) {
        Some(OperandValue::Reg(reg)) => Some(u32::from(reg.count)),
        _ => None,
    }
}

/// The vector register that an operand names, if it is a whole one.
fn whole_register(inst: &Inst, isa: Isa, banks: VgprBanks, name: Name) -> Option<Reg> {
    let Some(OperandValue::Reg(reg)) = inst.operand(isa, name) else { return None };
    let slot = inst.entry().slots().iter().position(|slot| slot.name == name)?;
    let reg = banks.resolve_register(reg, bank_role(inst.entry(), slot as u8))?;
    (reg.file == RegFile::Vgpr && reg.count == 1 && reg.half.is_none()).then_some(reg)
}

fn track_zeros(inst: &Inst, isa: Isa, banks: VgprBanks, zeros: &mut KnownZeroBits) {
    let result = known_zero_bits(inst, isa, banks, zeros);
    let written = inst.written_set(isa, banks);
    let ends = [Special::ExecLo, Special::ExecHi, Special::Mode].map(|special| Reg::special(special, 1));
    if ends.iter().any(|reg| written.touches(*reg)) || inst.is(Flag::Call) {
        zeros.clear();
        return;
    }
    zeros.retain(|index, _| !written.touches(Reg::new(RegFile::Vgpr, *index, 1)));
    if let Some((reg, bits)) = result.zip(whole_register(inst, isa, banks, Name::Vdst)).map(|(bits, reg)| (reg, bits)) {
        zeros.insert(reg.index, bits);
    }
}

/// Low bits of the result that are zero.
fn known_zero_bits(inst: &Inst, isa: Isa, banks: VgprBanks, zeros: &KnownZeroBits) -> Option<u32> {
    const PLAIN: [Class; 3] = [Class::Vop1, Class::Vop2, Class::Vop3];
    if !inst.class().is_some_and(|class| PLAIN.contains(&class)) || inst.raw(Name::Clamp).unwrap_or(0) != 0 {
        return None;
    }
    let sources = [Name::Src0, Name::Src1, Name::Src2];
    let [a, b, c] = sources.map(|name| source_zero_bits(inst, isa, banks, zeros, name));
    let [by_a, by_b, by_c] = sources.map(|name| constant_operand(inst, isa, name));
    let bits = match inst.mnemonic() {
        "v_mov_b32" => a,
        "v_lshlrev_b32" => add_shift_zeros(b, by_a),
        "v_add_nc_u32" | "v_or_b32" | "v_xor_b32" | "v_sub_nc_u32" | "v_subrev_nc_u32" => a.min(b),
        "v_and_b32" => a.max(b),
        "v_mul_lo_u32" | "v_mul_u32_u24" => a.saturating_add(b),
        "v_lshl_add_u32" | "v_lshl_or_b32" => add_shift_zeros(a, by_b).min(c),
        "v_add_lshl_u32" => add_shift_zeros(a.min(b), by_c),
        "v_mad_u32_u24" => a.saturating_add(b).min(c),
        "v_and_or_b32" => a.max(b).min(c),
        "v_add3_u32" => a.min(b).min(c),
        _ => return None,
    };
    Some(bits.min(8))
}

/// Low bits of a source that are zero.
fn source_zero_bits(inst: &Inst, isa: Isa, banks: VgprBanks, zeros: &KnownZeroBits, name: Name) -> u32 {
    match constant_operand(inst, isa, name) {
        Some(value) => value.trailing_zeros(),
        None => whole_register(inst, isa, banks, name).and_then(|reg| zeros.get(&reg.index)).copied().unwrap_or(0),
    }
}

fn add_shift_zeros(bits: u32, by: Option<u32>) -> u32 {
    by.map_or(0, |by| bits.saturating_add(by & 31))
}
