//! Products of matrices.

use super::operands::OperandReader;
use super::vector;
use crate::execute::matrix;
use crate::micro::{Extra, MatrixLayout, MatrixPlan, MicroOp, Source};
use hotswap_isa::{Feature, Name, Value};
use hotswap_semantics::{MatrixFormat, MatrixKind, MatrixRow};

/// A product.
pub(super) fn product(reader: &OperandReader, op: MicroOp, row: MatrixRow) -> Option<MicroOp> {
    let mut op = vector::with_operands(reader, op)?;
    let is_sparse = matches!(row.kind, MatrixKind::SparseMfma | MatrixKind::SparseWmma);
    if is_sparse {
        return None;
    }
    let plan = MatrixPlan {
        row,
        blocks: blocks(reader, row)?,
        layout: layout(reader, row),
        is_fnuz: reader.isa.has(Feature::Gfx940Insts) && !reader.isa.has(Feature::Gfx950Insts),
        flushes: reader.isa.has(Feature::Gfx90aInsts)
            && !reader.isa.has(Feature::Gfx940Insts)
            && row.sources[0].bits() == 16,
        broadcast: (field(reader, Name::Cbsz), field(reader, Name::Abid)),
        permutation: field(reader, Name::Blgp),
    };
    if !is_known(&op, &plan) {
        return None;
    }
    op.extra = Some(Box::new(Extra::Matrix(plan)));
    Some(MicroOp { handler: matrix::multiply, ..op })
}

fn field(reader: &OperandReader, name: Name) -> u8 {
    reader.inst.raw(name).unwrap_or(0) as u8
}

fn layout(reader: &OperandReader, row: MatrixRow) -> MatrixLayout {
    match row.kind {
        MatrixKind::Mfma | MatrixKind::SparseMfma => MatrixLayout::Blocks,
        _ if reader.isa.has(Feature::Gfx12Insts) => MatrixLayout::Halves,
        _ => MatrixLayout::Replicated,
    }
}

/// Products in one instruction: what is in the registers of A, by what one product takes.
fn blocks(reader: &OperandReader, row: MatrixRow) -> Option<u32> {
    if !matches!(row.kind, MatrixKind::Mfma) {
        return Some(1);
    }
    let registers =
        reader.all().find(|(_, operand)| operand.name == Name::Src0).and_then(|(_, operand)| match operand.value {
            Value::Reg(reg) => Some(u32::from(reg.count)),
            _ => None,
        })?;
    let held = 64 * registers * 32 / row.sources[0].bits();
    let blocks = held / (row.rows * row.depth);
    (blocks > 0).then_some(blocks)
}

/// Whether all modifiers have a meaning that is known.
fn is_known(op: &MicroOp, plan: &MatrixPlan) -> bool {
    let registers = op.sources[..2].iter().all(|source| matches!(source, Source::Vector { .. }));
    let modifiers = op.modifiers;
    let of_sources = |bits: u8| bits & 3;
    let signs = plan.row.sources[0].is_integer() || of_sources(modifiers.negative) == of_sources(modifiers.absolute);
    // For 64-bit floats the field of permutations has other meanings.
    let permuted = plan.permutation == 0 || plan.row.result != MatrixFormat::F64;
    let clamped = !modifiers.clamp || plan.row.result.is_integer();
    registers && signs && permuted && clamped
}
