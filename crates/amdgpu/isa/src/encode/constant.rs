//! Constants as source operands: which values the encoding has a number for, and how others become literals.
//!
//! Invariants: a value gets a number only if an operand of this type reads exactly that value back from it; the same
//! holds for literals.

use crate::Isa;
use crate::kind::OperandType;
use crate::value::Inline;

/// The number of bits of a constant that an operand reads.
fn operand_bits(operand: OperandType) -> u32 {
    use OperandType as Type;
    match operand {
        Type::RegImmFp16 | Type::RegInlineCFp16 | Type::RegImmBf16 | Type::RegInlineCBf16 => 16,
        _ if is_wide(operand) && !is_pair(operand) => 64,
        _ => 32,
    }
}

/// Pairs of 32 bits: both halves read the same constant.
fn is_pair(operand: OperandType) -> bool {
    matches!(operand, OperandType::RegImmV2int32 | OperandType::RegImmV2fp32)
}

/// The number of the inline constant with this value, which lacks bits beyond those that the operand reads.
pub(super) fn inline_constant(operand: OperandType, value: u64, isa: Isa) -> Option<u8> {
    if !takes_inline(operand) {
        return None;
    }
    let mask = u64::MAX >> (64 - operand_bits(operand));
    (128..=208).chain(240..=248).find(|code| Inline::new(*code, operand, isa).value as u64 & mask == value)
}

/// A literal as the instruction holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldLiteral {
    /// A literal of one dword.
    Short(u32),
    /// A literal of two dwords.
    Long(u64),
}

/// The literal that the hardware reads as `value`, `None` if none of 32 bits does and `long` ones do not exist.
///
/// A float of 64 bits is the literal's 32 bits above 32 zeros. An integer of 64 bits is made from 32 bits by either
/// extension, depending on the instruction, so only values on which they agree are taken.
pub(super) fn encode_literal(operand: OperandType, value: u64, long: bool) -> Option<HeldLiteral> {
    let short = match operand_bits(operand) {
        64 if is_float64(operand) => (value as u32 == 0).then_some((value >> 32) as u32),
        64 => i32::try_from(value).ok().map(|value| value as u32),
        16 => u16::try_from(value).ok().map(u32::from),
        _ => u32::try_from(value).ok(),
    };
    short.map(HeldLiteral::Short).or(long.then_some(HeldLiteral::Long(value)))
}

/// Whether 32 literal bits are the upper half of the operand's value.
pub(super) fn is_float64(operand: OperandType) -> bool {
    use OperandType as Type;
    matches!(operand, Type::RegImmFp64 | Type::RegInlineCFp64 | Type::RegInlineAcFp64 | Type::RegImmV2fp64)
}

/// Whether inline constants mean anything in the operand.
fn takes_inline(operand: OperandType) -> bool {
    use OperandType as Type;
    operand.is_source()
        && !matches!(operand, Type::Register | Type::RegImmNoinlineV2fp16 | Type::Kimm16 | Type::Kimm32 | Type::Kimm64)
}

/// Whether the operand takes literals.
pub(super) fn takes_literal(operand: OperandType) -> bool {
    use OperandType as Type;
    matches!(
        operand,
        Type::RegImmInt32
            | Type::RegImmInt64
            | Type::RegImmInt16
            | Type::RegImmFp32
            | Type::RegImmFp64
            | Type::RegImmBf16
            | Type::RegImmFp16
            | Type::RegImmV2bf16
            | Type::RegImmV2fp16
            | Type::RegImmV2fp16Splat
            | Type::RegImmV2int16
            | Type::RegImmV2int64
            | Type::RegImmNoinlineV2fp16
            | Type::RegImmV2int32
            | Type::RegImmV2fp32
            | Type::RegImmV2fp64
            | Type::Kimm16
            | Type::Kimm32
            | Type::Kimm64
    )
}

/// Whether a literal of the operand counts as one of 64 bits.
pub(super) fn is_wide(operand: OperandType) -> bool {
    use OperandType as Type;
    matches!(
        operand,
        Type::RegImmInt64
            | Type::RegInlineCInt64
            | Type::RegImmFp64
            | Type::RegInlineCFp64
            | Type::RegInlineAcFp64
            | Type::RegImmV2int64
            | Type::RegImmV2fp64
            | Type::RegImmV2int32
            | Type::RegImmV2fp32
            | Type::Kimm64
    )
}
