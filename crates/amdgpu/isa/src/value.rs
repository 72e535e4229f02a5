//! Values of operands: registers, constants, literals, numbers.
//!
//! Invariants: a constant keeps both the number of its source field and the bits that the instruction reads; a literal
//! keeps the bits that the instruction reads and how it was encoded.
//!
//! Absent on purpose: text (see [`crate::text`]).

use crate::isa::Isa;
use crate::kind::OperandType;
use crate::reg::Reg;
use crate::tables::Feature;

/// The value of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandValue {
    /// A register or several.
    Reg(Reg),
    Inline(Inline),
    Literal(Literal),
    /// A number of the encoding.
    Imm(i64),
    /// No value: the operand is meaningless in this instruction.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inline {
    /// Number in the source field: 128 to 208 integers, 240 to 248 floats.
    pub code: u8,
    /// The value as the operand's type sees it; integers are sign-extended.
    pub value: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Literal {
    /// The value as the operand reads it; for a 64-bit float of 32 encoded bits these are the upper half.
    pub value: u64,
    /// 64 bits are encoded.
    pub wide: bool,
    /// A constant with the same value exists, so text has to mark it as a literal.
    pub explicit: bool,
}

/// Floats of the source field from 240 on: 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1/2π.
const SINGLE: [u32; 9] = [
    0x3f00_0000,
    0xbf00_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x4000_0000,
    0xc000_0000,
    0x4080_0000,
    0xc080_0000,
    0x3e22_f983,
];
const DOUBLE: [u64; 9] = [
    0x3fe0_0000_0000_0000,
    0xbfe0_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x4000_0000_0000_0000,
    0xc000_0000_0000_0000,
    0x4010_0000_0000_0000,
    0xc010_0000_0000_0000,
    0x3fc4_5f30_6dc9_c882,
];
const HALF: [u16; 9] = [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118];
const BRAIN: [u16; 9] = [0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000, 0xc000, 0x4080, 0xc080, 0x3e22];

/// Texts of the constants in the tables above; those of 1/2π differ by width.
const FLOATS: [&str; 9] = ["0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494"];

/// The width of the floats of an operand type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Single,
    Double,
    Half,
    Brain,
}

/// The width of the floats that constants of an operand type are.
fn width(operand_type: OperandType) -> Width {
    use OperandType as T;
    match operand_type {
        T::RegImmBf16 | T::RegImmV2bf16 | T::RegInlineCBf16 | T::RegInlineCV2bf16 => Width::Brain,
        T::RegImmFp16 | T::RegInlineCFp16 | T::RegImmV2fp16 | T::RegInlineCV2fp16 | T::RegImmV2fp16Splat => Width::Half,
        T::RegImmFp64
        | T::RegImmInt64
        | T::RegInlineAcFp64
        | T::RegInlineCFp64
        | T::RegInlineCInt64
        | T::RegImmV2fp64
        | T::RegImmV2int64 => Width::Double,
        _ => Width::Single,
    }
}

impl Inline {
    /// The constant for number `code` of the source field in an operand of a type.
    pub fn new(code: u8, operand_type: OperandType, isa: Isa) -> Inline {
        let value = match code {
            128..=192 => i64::from(code) - 128,
            193..=208 => 192 - i64::from(code),
            _ => float(usize::from(code.saturating_sub(240)), operand_type, isa),
        };
        Inline { code, value }
    }
}

/// The float number `index` of the tables.
fn float(index: usize, operand_type: OperandType, isa: Isa) -> i64 {
    match width(operand_type) {
        Width::Single => i64::from(SINGLE.get(index).copied().unwrap_or(0)),
        Width::Double => DOUBLE.get(index).copied().unwrap_or(0) as i64,
        Width::Brain => table_half_value(&BRAIN, index),
        Width::Half if operand_type == OperandType::RegImmV2fp16Splat && isa.has(Feature::Gfx11Insts) => {
            table_half_value(&HALF, index) << 16 | table_half_value(&HALF, index)
        }
        Width::Half => table_half_value(&HALF, index),
    }
}

fn table_half_value(table: &[u16; 9], index: usize) -> i64 {
    i64::from(table.get(index).copied().unwrap_or(0))
}

/// Whether an integer is an inline constant.
pub(crate) fn is_inline_integer(value: i64) -> bool {
    (-16..=64).contains(&value)
}

/// Text of the float of 32 bits if it is an inline constant.
pub(crate) fn single_text(bits: u32) -> Option<&'static str> {
    if bits == 0 {
        return Some("0.0");
    }
    SINGLE.iter().position(|single| *single == bits).map(|index| FLOATS[index])
}

/// Text of the float of 64 bits if it is an inline constant.
pub(crate) fn double_text(bits: u64) -> Option<&'static str> {
    let index = DOUBLE.iter().position(|double| *double == bits)?;
    Some(if index == 8 { "0.15915494309189532" } else { FLOATS[index] })
}

/// Text of the float of 16 bits if it is an inline constant.
pub(crate) fn half_text(bits: u16) -> Option<&'static str> {
    HALF.iter().position(|half| *half == bits).map(|index| FLOATS[index])
}

/// Text of the brain float of 16 bits if it is an inline constant.
pub(crate) fn brain_text(bits: u16) -> Option<&'static str> {
    BRAIN.iter().position(|brain| *brain == bits).map(|index| FLOATS[index])
}

impl Literal {
    /// The literal of 32 encoded bits in an operand of a type.
    pub fn narrow(bits: u64, operand_type: OperandType, isa: Isa) -> Literal {
        use OperandType as T;
        let explicit = is_inline(bits, operand_type, isa);
        let upper = matches!(operand_type, T::RegImmFp64 | T::RegInlineCFp64 | T::RegInlineAcFp64 | T::RegImmV2fp64);
        Literal { value: if upper && !explicit { bits << 32 } else { bits }, wide: false, explicit }
    }

    /// The literal of 64 encoded bits.
    pub fn wide(bits: u64) -> Literal {
        let explicit = bits >> 32 == 0 || is_inline_integer(bits as i64) || double_text(bits).is_some();
        Literal { value: bits, wide: true, explicit }
    }
}

/// Whether an inline constant has the meaning of a literal of these bits.
fn is_inline(bits: u64, operand_type: OperandType, isa: Isa) -> bool {
    use OperandType as T;
    let (low, signed) = (bits as u16, bits as u32 as i32);
    let small = is_inline_integer(i64::from(low as i16));
    match operand_type {
        T::Register | T::RegImmNoinlineV2fp16 => false,
        T::RegImmBf16 | T::RegInlineCBf16 | T::RegInlineCV2bf16 => small || brain_text(low).is_some(),
        T::RegImmFp16 | T::RegInlineCFp16 | T::RegInlineCV2fp16 => small || half_text(low).is_some(),
        T::RegImmV2bf16 => is_packed_inline(brain_text, signed, bits, low),
        T::RegImmV2fp16 => is_packed_inline(half_text, signed, bits, low),
        T::RegImmV2fp16Splat if isa.has(Feature::Gfx11Insts) => {
            let equal = low == (bits >> 16) as u16;
            is_inline_integer(i64::from(signed)) || equal && (half_text(low).is_some() || low <= 64)
        }
        T::RegImmV2fp16Splat => is_packed_inline(half_text, signed, bits, low),
        // The integer forms of packed constants are floats of 32 bits, but not 0.0, which is the integer.
        T::RegImmFp64 | T::RegInlineCFp64 | T::RegInlineAcFp64 | T::RegImmV2fp64 => is_double_inline(bits << 32),
        T::RegImmInt64 | T::RegInlineCInt64 | T::RegImmV2int64 => is_double_inline(bits),
        _ => is_single_inline(signed, bits),
    }
}

fn is_single_inline(signed: i32, bits: u64) -> bool {
    is_inline_integer(i64::from(signed)) || single_text(bits as u32).is_some()
}

fn is_double_inline(bits: u64) -> bool {
    is_inline_integer(bits as i64) || bits == 0 || double_text(bits).is_some()
}

fn is_packed_inline(text: fn(u16) -> Option<&'static str>, signed: i32, bits: u64, low: u16) -> bool {
    is_inline_integer(i64::from(signed)) || bits <= 0xffff && text(low).is_some()
}
