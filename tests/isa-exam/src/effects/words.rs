//! Words of a described encoding with a known register in every operand, and the resulting reads and writes.

use super::records::{Bit, Class, Description, NSA, Operand};
use crate::oracle::Word;
use hotswap_isa::reg::{Reg, RegFile, Special, VgprHalf};
use std::collections::BTreeMap;

/// The choice of registers for the operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Vector registers where possible, their lower halves.
    Vector,
    /// Scalar registers where possible; VCC where that is the other choice.
    Scalar,
    /// Accumulation registers where possible, upper halves, odd numbers for dual instructions.
    Other,
}

impl Choice {
    pub const ALL: [Self; 3] = [Self::Vector, Self::Scalar, Self::Other];
}

/// A register that an operand names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The operand.
    pub name: String,
    /// Written rather than read.
    pub written: bool,
    pub register: Reg,
}

/// A word and the registers that its operands name.
#[derive(Debug, Clone)]
pub struct Case {
    pub word: Word,
    /// Its registers.
    pub named: Vec<Named>,
}

/// Fields without a register; other fields are 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct Numbers {
    /// Dimension of an image.
    pub dimension: u64,
    /// Mask of image data.
    pub mask: u64,
    /// Image data of 16 bits.
    pub d16: bool,
}

/// The word of an encoding on a processor with masks of so many dwords.
pub fn case(description: &Description, choice: Choice, numbers: Numbers, mask: u8) -> Case {
    let mut values: BTreeMap<&str, u64> =
        BTreeMap::from([(NSA, (description.bits.len() as u64 - 64.min(description.bits.len() as u64)) / 32)]);
    let mut named = Vec::new();
    for (at, operand) in description.operands.iter().enumerate() {
        let Some(class) = &operand.class else {
            *values.entry(&operand.name).or_default() |= number(operand, choice, numbers);
            continue;
        };
        let Some(partner) = placed(description, operand) else {
            // SDWA of gfx9 has an implied result where gfx10 has a field.
            if operand.kind == "SDWAVopcDst" {
                named.push(entry(operand, Reg::special(Special::VccLo, mask)));
            }
            continue;
        };
        let first = description.operands.iter().position(|other| other.name == partner.name).unwrap_or(at);
        let (value, register) = register(description, partner, first, choice, mask);
        let dwords = dwords(class, mask);
        named.push(entry(operand, if register.half.is_some() { register } else { Reg { count: dwords, ..register } }));
        *values.entry(&partner.name).or_default() |= value;
        if let (Some(VgprHalf::High), Some((modifiers, bit))) = (register.half, half_bit(description, partner)) {
            *values.entry(modifiers).or_default() |= bit;
        }
    }
    let mut bytes = vec![0u8; description.bits.len().div_ceil(8).max(4)];
    for (at, bit) in description.bits.iter().enumerate() {
        let set = match bit {
            Bit::Fixed(set) => *set,
            Bit::Operand(name, index) => values.get(name.as_str()).is_some_and(|value| value >> (index & 63) & 1 != 0),
            Bit::Free => false,
        };
        bytes[at / 8] |= u8::from(set) << (at % 8);
    }
    Case { word: Word::new(&bytes), named }
}

fn entry(operand: &Operand, register: Reg) -> Named {
    Named { name: operand.name.clone(), written: operand.written, register }
}

/// A register as assembly writes it.
pub fn text(register: Reg) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = register.write(&mut text);
    text
}

/// How many dwords a register of the class has.
fn dwords(class: &Class, mask: u8) -> u8 {
    if class.bits == 0 { mask } else { u8::try_from(class.bits.div_ceil(32)).unwrap_or(u8::MAX) }
}

/// The operand whose field contains the register: itself, or the one that it is tied to.
fn placed<'a>(description: &'a Description, operand: &'a Operand) -> Option<&'a Operand> {
    if has_operand_bits(&operand.name, description) {
        return Some(operand);
    }
    let partner = description.ties.iter().find_map(|(one, other)| match &operand.name {
        name if name == one => Some(other),
        name if name == other => Some(one),
        _ => None,
    })?;
    description.operands.iter().find(|other| other.name == *partner && has_operand_bits(&other.name, description))
}

fn has_operand_bits(name: &str, description: &Description) -> bool {
    description.bits.iter().any(|bit| matches!(bit, Bit::Operand(of, _) if of == name))
}

/// Whether the encoding has that bit of the operand's value.
fn has_bit(description: &Description, name: &str, wanted: u8) -> bool {
    description.bits.iter().any(|bit| matches!(bit, Bit::Operand(of, index) if of == name && *index == wanted))
}

/// The value of an operand that is not a register.
fn number(operand: &Operand, choice: Choice, numbers: Numbers) -> u64 {
    match operand.kind.as_str() {
        // The value of DPP8 without fetching of inactive lanes.
        "Dpp8FI" => 0xe9,
        "DMask" => numbers.mask,
        "Dim" => numbers.dimension,
        "D16" => numbers.d16.into(),
        // The constant 1.
        "SplitBarrier" => 129,
        // Offset 0 means the form without offset.
        "SMEMOffset" | "SMEMOffsetMod" => 8,
        // MODE, all of it.
        "hwreg" => 1 | 31 << 11,
        _ if operand.name == "en" => 15,
        // Encodings of gfx942 that follow those of gfx90a have one more bit of the cache policy.
        _ if operand.name == "cpol" && choice == Choice::Other => 16,
        _ => 0,
    }
}

/// A register for the operand number `at`: the value of the field, and the register.
fn register(description: &Description, operand: &Operand, at: usize, choice: Choice, mask: u8) -> (u64, Reg) {
    let Some(class) = &operand.class else { return (0, Reg::new(RegFile::Vgpr, 0, 1)) };
    let at = u16::try_from(at).unwrap_or(0);
    // Distinct, even, and small enough for the classes that end at 127; scalar tuples begin at multiples of four.
    let (vector, scalar) = (8 + 10 * at, 8 + 4 * at);
    let count = dwords(class, mask);
    let nine = has_bit(description, &operand.name, 8);
    let is_sdwa = operand.kind.starts_with("SDWASrc");
    if operand.kind == "SDWAVopcDst" {
        return match choice {
            Choice::Scalar => (0, Reg::special(Special::VccLo, mask)),
            _ => (0x80 | u64::from(scalar), Reg::new(RegFile::Sgpr, scalar, mask)),
        };
    }
    let is_source = class.name.starts_with("VS_");
    if class.scalar && !class.vector || choice == Choice::Scalar && is_source && nine {
        let selector = if is_sdwa { 256 } else { 0 };
        return (selector | u64::from(scalar), Reg::new(RegFile::Sgpr, scalar, count));
    }
    let selector = if nine && !is_sdwa { 256 } else { 0 };
    if class.bits == 16 {
        return half(description, operand, class, selector, vector, choice);
    }
    if class.accumulation && (!class.vector || choice == Choice::Other && has_bit(description, &operand.name, 9)) {
        let selector = if has_bit(description, &operand.name, 9) { selector | 512 } else { selector };
        return (selector | u64::from(vector), Reg::new(RegFile::Agpr, vector, count));
    }
    match (operand.kind.as_str(), choice) {
        // The lowest bit is not that of the first result.
        ("VOPDDstYOperand", Choice::Other) => (u64::from(vector), Reg::new(RegFile::Vgpr, vector, count)),
        ("VOPDDstYOperand", _) => (u64::from(vector), Reg::new(RegFile::Vgpr, vector + 1, count)),
        (_, Choice::Other) if operand.name == "vdstX" => {
            (u64::from(vector + 1), Reg::new(RegFile::Vgpr, vector + 1, count))
        }
        _ => (selector | u64::from(vector), Reg::new(RegFile::Vgpr, vector, count)),
    }
}

/// Half of a register, the upper one if that is chosen and can be encoded.
fn half(
    description: &Description,
    operand: &Operand,
    class: &Class,
    selector: u64,
    vector: u16,
    choice: Choice,
) -> (u64, Reg) {
    let is_low_128 = class.name.ends_with("Lo128");
    let can = is_low_128 || half_bit(description, operand).is_some();
    let half = if choice == Choice::Other && can { VgprHalf::High } else { VgprHalf::Low };
    let high = if is_low_128 && half == VgprHalf::High { 128 } else { 0 };
    (selector | high | u64::from(vector), Reg::half(vector, half))
}

/// The modifiers that select the half of a register for an operand, and their bit: 2 of a source's own, 3 of the first
/// source's for the result. Where registers end at 127, bit 7 of the number selects it.
fn half_bit<'a>(description: &'a Description, operand: &Operand) -> Option<(&'a str, u64)> {
    if operand.class.as_ref().is_some_and(|class| class.name.ends_with("Lo128")) {
        return None;
    }
    let (modifiers, bit) = match operand.name.as_str() {
        "vdst" => ("src0_modifiers".to_owned(), 3),
        name => (format!("{name}_modifiers"), 2),
    };
    let found = description.operands.iter().find(|other| other.name == modifiers)?;
    has_bit(description, &modifiers, bit).then_some((found.name.as_str(), 1 << bit))
}
