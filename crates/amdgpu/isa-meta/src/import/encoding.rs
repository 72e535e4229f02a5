//! The bits of a record's `Inst`: fixed ones and fields.
//!
//! A bit that names no operand has the value of the record's field of that name; where that is open, the bit
//! does not matter (LLVM's decoder and encoder do the same).

use super::json::JsonRecord;
use super::{ImportError, wrong};
use crate::model::{EncodingField, FieldPiece};
use serde_json::Value;
use std::collections::BTreeMap;

/// The encoding in a record.
#[derive(Debug, Clone, Default)]
pub(super) struct Encoding {
    pub(super) bits: u8,
    pub(super) fixed_mask: u128,
    pub(super) fixed_value: u128,
    pub(super) fields: BTreeMap<String, Vec<FieldBit>>,
}

/// A bit of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldBit {
    /// The bit of the field's value.
    from: u8,
    /// The bit of the instruction.
    at: u8,
}

/// The kind of one bit.
enum EncodingBit<'a> {
    Open,
    Fixed(bool),
    Field(&'a str, u8),
}

/// Reads the encoding of a record. `operands` are the names that fields may have.
pub(super) fn read_encoding(record: &JsonRecord, operands: &[&str]) -> Result<Encoding, ImportError> {
    let list = record.list("Inst");
    let mut encoding = Encoding { bits: u8::try_from(record.int("Size") * 8).unwrap_or(0), ..Encoding::default() };
    if !matches!(encoding.bits, 32 | 64 | 96 | 128) || usize::from(encoding.bits) != list.len() {
        return wrong(record.name(), format!("{} bits and a size of {} bytes", list.len(), record.int("Size")));
    }
    for (at, value) in (0_u8..).zip(list) {
        match parse_bit(record, operands, value)? {
            EncodingBit::Open => {}
            EncodingBit::Fixed(set) => {
                encoding.fixed_mask |= 1 << at;
                encoding.fixed_value |= u128::from(set) << at;
            }
            EncodingBit::Field(name, from) => {
                encoding.fields.entry(name.to_owned()).or_default().push(FieldBit { from, at });
            }
        }
    }
    Ok(encoding)
}

fn parse_bit<'a>(record: &'a JsonRecord, operands: &[&str], value: &'a Value) -> Result<EncodingBit<'a>, ImportError> {
    if value.is_null() {
        return Ok(EncodingBit::Open);
    }
    if let Some(number) = value.as_u64() {
        return Ok(EncodingBit::Fixed(number == 1));
    }
    let name = value.get("var").and_then(Value::as_str).unwrap_or_default();
    let index = value.get("index").and_then(Value::as_u64).unwrap_or(0);
    match value.get("kind").and_then(Value::as_str) {
        Some("var" | "varbit") if operands.contains(&name) => {
            Ok(EncodingBit::Field(name, u8::try_from(index).unwrap_or(0)))
        }
        Some("var" | "varbit") => parse_variable_bit(record, name, usize::try_from(index).unwrap_or(0)),
        Some("complex") => parse_complex_bit(record, value),
        _ => wrong(record.name(), format!("unknown bit: {value}")),
    }
}

/// A bit of a field of the record that is not an operand: it must be open.
fn parse_variable_bit<'a>(record: &'a JsonRecord, name: &str, index: usize) -> Result<EncodingBit<'a>, ImportError> {
    let value = match record.get(name) {
        Some(Value::Array(bits)) => bits.get(index).filter(|bit| !bit.is_null()),
        value => value,
    };
    match value {
        None if matches!(name, "Offset" | "SOffsetEn") => Ok(EncodingBit::Open),
        _ => wrong(record.name(), format!("a bit of {name}, which is neither an operand nor open")),
    }
}

/// The one expression that LLVM leaves unevaluated: whether a scalar load of gfx8 and gfx9 has its second offset.
/// Its condition is open in those records, so the bit is.
fn parse_complex_bit<'a>(record: &JsonRecord, value: &Value) -> Result<EncodingBit<'a>, ImportError> {
    let text = value.get("printable").and_then(Value::as_str).unwrap_or_default();
    let open = record.get("IsGFX9SpecificEncoding").is_none_or(|value| value == 0);
    if open && text.starts_with("!if(!and(IsGFX9SpecificEncoding, ") && text.contains(" }, ?){") {
        return Ok(EncodingBit::Open);
    }
    wrong(record.name(), format!("unknown expression for a bit: {text}"))
}

/// Pieces of a field from its bits.
fn pieces_of_bits(bits: &[FieldBit]) -> Vec<FieldPiece> {
    let mut bits = bits.to_vec();
    bits.sort_unstable();
    let mut pieces: Vec<FieldPiece> = Vec::new();
    for FieldBit { from, at } in bits {
        match pieces.last_mut() {
            Some(last) if from == last.from + last.width && at == last.at + last.width => last.width += 1,
            _ => pieces.push(FieldPiece { at, from, width: 1 }),
        }
    }
    pieces
}

/// The fields in the model's form, by name.
pub(super) fn encoding_fields(encoding: &Encoding) -> Vec<EncodingField> {
    let fields = encoding.fields.iter();
    fields.map(|(name, bits)| EncodingField { name: name.clone(), pieces: pieces_of_bits(bits) }).collect()
}
