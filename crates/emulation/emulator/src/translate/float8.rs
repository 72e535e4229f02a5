//! Conversions of 8-bit floats.

use super::operands::OperandReader;
use super::vector;
use crate::micro::{MicroOp, MicroOpBody};
use hotswap_isa::{Feature, Name};
use hotswap_semantics::Float8;

/// A conversion. `clamp` means another format on gfx12.5, and is not known.
pub(super) fn translate_conversion(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    let name = reader.inst.mnemonic();
    let is_fnuz = reader.isa.has(Feature::Gfx940Insts) && !reader.isa.has(Feature::Gfx950Insts);
    let mut op = vector::with_operands(reader, op)?;
    if op.modifiers.clamp || op.modifiers.output != 0 {
        return None;
    }
    op.body = MicroOpBody::Float8(Float8::new(name.contains("bf8"), is_fnuz));
    op.immediate = reader.inst.raw(Name::ByteSel).unwrap_or(0) as i64;
    if !name.ends_with("8") || name.starts_with("v_cvt_f16") {
        op.target = vector::upper_if_selected(reader, op.target);
    }
    Some(op)
}
