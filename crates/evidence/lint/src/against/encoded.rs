//! How the instructions of a replacement are encoded: two words that do the same are not both accepted.
//!
//! Invariants: bits that no operand holds are those that LLVM sets, and constants of which the hardware reads the low bits
//! have no others, and fields end within the register. Where the original's own instruction is not so, its replacement need not be.

use hotswap_isa::encode::reassemble;
use hotswap_isa::{Inst, Isa, Name, OperandValue};

/// An instruction of which the hardware reads five bits of some operands.
struct ShortCounts {
    mnemonic: &'static str,
    operands: &'static [Name],
}

const fn short_counts(mnemonic: &'static str, operands: &'static [Name]) -> ShortCounts {
    ShortCounts { mnemonic, operands }
}

const SHORT_COUNTS: [ShortCounts; 6] = [
    short_counts("v_bfe_u32", &[Name::Src1, Name::Src2]),
    short_counts("v_lshrrev_b32", &[Name::Src0]),
    short_counts("v_ashrrev_i32", &[Name::Src0]),
    short_counts("v_lshlrev_b32", &[Name::Src0]),
    short_counts("v_lshl_or_b32", &[Name::Src1]),
    short_counts("v_lshl_add_u32", &[Name::Src1]),
];

/// Checks a replacement; the first of the pairs is the instruction that it replaces.
pub(super) fn check_encodings((old, source): (&Inst, Isa), (code, target): (&[Inst], Isa)) -> Result<(), String> {
    if has_other_bits(old, source) {
        return Ok(());
    }
    if let Some(inst) = code.iter().find(|inst| has_other_bits(inst, target)) {
        return Err(format!("bits of `{}` that mean nothing are not those that an assembler sets", inst.mnemonic()));
    }
    match code.iter().find(|inst| has_long_count(inst, target)) {
        Some(inst) => Err(format!("a count of `{}` says the same as a smaller one", inst.mnemonic())),
        None => Ok(()),
    }
}

fn has_other_bits(inst: &Inst, isa: Isa) -> bool {
    reassemble(inst, isa).is_ok_and(|assembled| assembled.bytes() != inst.bytes())
}

fn has_long_count(inst: &Inst, isa: Isa) -> bool {
    let Some(row) = SHORT_COUNTS.iter().find(|row| row.mnemonic == inst.mnemonic()) else { return false };
    let counts: Vec<i64> = row.operands.iter().filter_map(|name| constant_operand(inst, isa, *name)).collect();
    // Of a field the offset and the width are constants: what lies beyond the register is 0.
    counts.iter().any(|count| !(0..32).contains(count)) || counts.len() == 2 && counts.iter().sum::<i64>() > 32
}

fn constant_operand(inst: &Inst, isa: Isa, name: Name) -> Option<i64> {
    match inst.operand(isa, name)? {
        OperandValue::Inline(inline) => Some(inline.value),
        OperandValue::Literal(literal) => Some(literal.value as i64),
        _ => None,
    }
}
