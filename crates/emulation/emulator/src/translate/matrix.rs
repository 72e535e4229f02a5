//! Products of matrices.

use super::operands::OperandReader;
use super::vector;
use crate::execute::matrix;
use crate::micro::{DestOperand, Extra, MatrixLayout, MatrixPlan, MatrixScale, MicroOp, SourceOperand, SparseIndex};
use hotswap_isa::{Feature, Name, OperandValue, Wave};
use hotswap_semantics::{MatrixFormat, MatrixKind, MatrixRow, OPERAND_FORMATS};

pub(super) fn translate_product(reader: &OperandReader, op: MicroOp, row: MatrixRow) -> Option<MicroOp> {
    let mut op = vector::with_operands(reader, op)?;
    let formats = operand_formats(reader, row)?;
    let row = MatrixRow { sources: formats.unwrap_or(row.sources), ..row };
    let index = index(reader, row)?;
    if index.is_some() {
        // C is what the target holds.
        let DestOperand::Vector { register, high } = op.target else { return None };
        op.sources[2] = SourceOperand::Vector { register, high };
    }
    let plan = MatrixPlan {
        row,
        blocks: block_count(reader, row)?,
        layout: matrix_layout(reader, row),
        is_fnuz: reader.isa.has(Feature::Gfx940Insts) && !reader.isa.has(Feature::Gfx950Insts),
        flushes: reader.isa.has(Feature::Gfx90aInsts)
            && !reader.isa.has(Feature::Gfx940Insts)
            && row.sources[0].bits() == 16,
        broadcast: match index.is_some() || formats.is_some() {
            true => (0, 0),
            false => (raw_field(reader, Name::Cbsz), raw_field(reader, Name::Abid)),
        },
        index,
        permutation: if formats.is_some() { 0 } else { raw_field(reader, Name::Blgp) },
        scales: source_scales(reader)?,
    };
    if !is_known(&op, &plan) {
        return None;
    }
    op.extra = Some(Box::new(Extra::Matrix(plan)));
    Some(MicroOp { handler: matrix::multiply_matrices, ..op })
}

fn raw_field(reader: &OperandReader, name: Name) -> u8 {
    reader.inst.raw(name).unwrap_or(0) as u8
}

/// Formats that are operands. The outer `None` is an unknown form: formats of different sizes, of which no document says
/// which elements of the one meet which of the other.
fn operand_formats(reader: &OperandReader, row: MatrixRow) -> Option<Option<[MatrixFormat; 2]>> {
    if !reader.inst.mnemonic().ends_with(OPERAND_FORMATS) {
        return Some(None);
    }
    let names = match row.kind {
        MatrixKind::Mfma => [Name::Cbsz, Name::Blgp],
        _ => [Name::MatrixAFmt, Name::MatrixBFmt],
    };
    let [a, b] = names.map(|name| MatrixFormat::of_operand(raw_field(reader, name).into()));
    let formats = [a?, b?];
    (formats[0].bits() == formats[1].bits()).then_some(Some(formats))
}

/// The scales of both sources. The outer `None` is an unknown form, such as scales that are not powers of two.
fn source_scales(reader: &OperandReader) -> Option<[Option<MatrixScale>; 2]> {
    if !reader.has(Name::ScaleSrc0) {
        return Some([None, None]);
    }
    Some([source_scale(reader, 0)?, source_scale(reader, 1)?])
}

fn source_scale(reader: &OperandReader, side: usize) -> Option<Option<MatrixScale>> {
    let register = match reader.source_operand([Name::ScaleSrc0, Name::ScaleSrc1][side])? {
        SourceOperand::Vector { register, .. } => register,
        // Without a register all scales are 1.
        SourceOperand::Constant(0) => return Some(None),
        _ => return None,
    };
    if reader.inst.mnemonic().starts_with("v_mfma_") {
        // Two bits that are op_sel and op_sel_hi elsewhere select the byte.
        let [first, second] = [0, 1].map(|word| reader.inst.words()[word]);
        let byte = (first >> (11 + side) & 1) | (second >> (27 + side) & 1) << 1;
        return Some(Some(MatrixScale { register, first_lane: 0, first_byte: byte as u8, bytes: 1 }));
    }
    let [row, format] = [[Name::MatrixAScale, Name::MatrixAScaleFmt], [Name::MatrixBScale, Name::MatrixBScaleFmt]]
        [side]
        .map(|name| raw_field(reader, name));
    let bytes = if reader.inst.mnemonic().contains("scale16") { 8 } else { 4 };
    (format == 0).then_some(Some(MatrixScale { register, first_lane: 16 * (row & 1), first_byte: 0, bytes }))
}

/// Where the positions of a sparse matrix's elements are. The outer `None` is an unknown form: for gfx12.5 documents and what
/// was seen of hardware differ.
fn index(reader: &OperandReader, row: MatrixRow) -> Option<Option<SparseIndex>> {
    let lanes = if reader.isa.wave() == Wave::W32 { 32 } else { 64 };
    let elements = row.rows * row.depth / 2 / lanes;
    let (name, part) = match row.kind {
        MatrixKind::Mfma | MatrixKind::Wmma => return Some(None),
        MatrixKind::SparseMfma if raw_field(reader, Name::Cbsz) != 0 => (Name::Idx, 0),
        MatrixKind::SparseMfma => (Name::Idx, raw_field(reader, Name::Abid)),
        MatrixKind::SparseWmma if reader.is_gfx125() => return None,
        MatrixKind::SparseWmma => {
            let keys = [Name::IndexKey8bit, Name::IndexKey16bit, Name::IndexKey32bit];
            (Name::Src2, keys.into_iter().map(|key| raw_field(reader, key)).max().unwrap_or(0))
        }
    };
    let SourceOperand::Vector { register, .. } = reader.source_operand(name)? else { return None };
    // Parts beyond the register do not exist.
    let shift = (u32::from(part) * 2 * elements) % 32;
    Some(Some(SparseIndex { register, shift: shift as u8 }))
}

fn matrix_layout(reader: &OperandReader, row: MatrixRow) -> MatrixLayout {
    match row.kind {
        MatrixKind::Mfma | MatrixKind::SparseMfma => MatrixLayout::Blocks,
        _ if reader.isa.has(Feature::Gfx12Insts) => MatrixLayout::Halves,
        _ => MatrixLayout::Replicated,
    }
}

/// Products in one instruction: what is in the registers of A, by what one product takes.
fn block_count(reader: &OperandReader, row: MatrixRow) -> Option<u32> {
    if row.kind != MatrixKind::Mfma || reader.inst.mnemonic().ends_with(OPERAND_FORMATS) {
        return Some(1);
    }
    let registers =
        reader.numbered_operands().find(|(_, operand)| operand.name == Name::Src0).and_then(|(_, operand)| {
            match operand.value {
                OperandValue::Reg(reg) => Some(u32::from(reg.count)),
                _ => None,
            }
        })?;
    let held = 64 * registers * 32 / row.sources[0].bits();
    let blocks = held / (row.rows * row.depth);
    (blocks > 0).then_some(blocks)
}

/// Whether all modifiers have a meaning that is known.
fn is_known(op: &MicroOp, plan: &MatrixPlan) -> bool {
    let registers = op.sources[..2].iter().all(|source| matches!(source, SourceOperand::Vector { .. }));
    let modifiers = op.modifiers;
    let signs = plan.row.sources[0].is_integer()
        || source_format_bits(modifiers.negative) == source_format_bits(modifiers.absolute);
    // For 64-bit floats the field of permutations has other meanings.
    let permuted = plan.permutation == 0 || plan.row.result != MatrixFormat::F64;
    let clamped = !modifiers.clamp || plan.row.result.is_integer();
    registers && signs && permuted && clamped
}

fn source_format_bits(bits: u8) -> u8 {
    bits & 3
}
