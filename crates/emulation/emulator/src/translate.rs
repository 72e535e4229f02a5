//! From a decoded instruction to the form in which it is executed.
//!
//! Invariants: what a mnemonic means is looked up once, in tables; a part of an instruction that the emulator does not
//! know makes the whole instruction unknown.

mod float8;
mod matrix;
mod memory;
mod names;
mod operands;
mod scalar;
mod vector;

use crate::execute::{self, InstHandler};
use crate::micro::{DestOperand, MicroOp, MicroOpBody, Modifiers, SourceOperand};
use crate::registers::VectorLimits;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Class, Feature, Flag, Inst, Isa, TableEntry};
use hotswap_semantics::{InstSemantics, MatrixKind, MatrixRow};
use operands::OperandReader;

/// The plan for a mnemonic.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MnemonicPlan {
    /// A handler that needs the operands only.
    Handler(InstHandler),
    /// A row of the semantics.
    Meaning(InstSemantics),
    /// An access to memory.
    Access(crate::memory_operation::MemoryOperation),
    /// A copy between memory and LDS.
    Asynchronous(crate::memory_operation::MemoryOperation),
    /// A product of matrices.
    Matrix(MatrixRow),
    /// Two accesses to LDS.
    TwoAddresses(InstHandler),
}

/// The form of an instruction in which it is executed, with vector registers in the banks of `banks`. On gfx9 these are
/// whether vector registers are indexed by M0.
pub(crate) fn translate_instruction(inst: Inst, isa: Isa, banks: u8, limits: VectorLimits) -> MicroOp {
    let indexed = banks != 0 && isa.has(Feature::VgprIndexMode);
    let reader = OperandReader::new(inst, isa, VgprBanks::of_mode(if indexed { 0 } else { banks }), limits);
    let op = reader.empty_op();
    if let Some(reg) = reader.missing_register() {
        return MicroOp { handler: execute::missing_register, body: MicroOpBody::MissingRegister(reg), ..op };
    }
    let known = translate_known(&reader, op.clone()).unwrap_or(MicroOp { handler: execute::unknown_instruction, ..op });
    if indexed && inst.is(Flag::Valu) { with_index(known) } else { known }
}

/// Whether there is a plan for a mnemonic.
pub(crate) fn knows_mnemonic(mnemonic: &str, isa: Isa) -> bool {
    names::find_plan(mnemonic)
        .is_some_and(|plan| !matches!(plan, MnemonicPlan::Matrix(row) if has_unknown_order(row, &isa)))
}

fn has_unknown_order(row: MatrixRow, isa: &Isa) -> bool {
    row.kind == MatrixKind::SparseWmma && isa.has(Feature::Gfx1250Insts)
}

/// The same for both halves of a dual instruction.
pub(crate) fn knows_both_halves(entry: TableEntry) -> bool {
    vector::half_names(entry).is_some_and(|names| names.iter().all(|name| vector::half_row(name).is_some()))
}

/// An instruction whose registers M0 moves. Compilers index moves only; of others it is not known which operands are.
fn with_index(op: MicroOp) -> MicroOp {
    let handler = match op.inst.mnemonic() {
        "v_mov_b32" if op.extra.is_none() => execute::cross_lane::move_indexed,
        _ => execute::unknown_instruction,
    };
    MicroOp { handler, ..op }
}

fn translate_known(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    if matches!(reader.inst.class()?, Class::Vopd | Class::Vopd3) {
        return vector::translate_dual(reader, op);
    }
    if let Some(handler) = execute::unsigned_float::find_handler(&reader.inst) {
        return Some(MicroOp { handler, ..op });
    }
    match names::find_plan(reader.inst.mnemonic())? {
        MnemonicPlan::Matrix(row) => matrix::translate_product(reader, op, row),
        MnemonicPlan::Handler(handler) => by_handler(reader, MicroOp { handler, ..op }),
        MnemonicPlan::TwoAddresses(handler) => memory::two_addresses(reader, MicroOp { handler, ..op }),
        MnemonicPlan::Asynchronous(operation) => memory::translate_async_copy(reader, op, operation),
        MnemonicPlan::Access(operation) => memory::translate_access(reader, op, operation),
        MnemonicPlan::Meaning(InstSemantics::Scalar(row)) => scalar::translate_row(reader, op, row),
        MnemonicPlan::Meaning(InstSemantics::Vector(row)) => vector::translate_row(reader, op, row),
        MnemonicPlan::Meaning(InstSemantics::Compare(row)) => vector::translate_compare(reader, op, row),
        MnemonicPlan::Meaning(InstSemantics::Packed(row)) => vector::translate_packed(reader, op, row),
        MnemonicPlan::Meaning(InstSemantics::Atomic(row)) => memory::translate_atomic(reader, op, row),
    }
}

/// Instructions whose handler does the rest.
fn by_handler(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    match reader.inst.class()? {
        Class::Sop1 | Class::Sop2 | Class::Sopc | Class::Sopk | Class::Sopp => scalar::translate_control(reader, op),
        Class::Smem => scalar::translate_control(reader, op),
        Class::Ds => memory::translate_lds_lanes(reader, op),
        Class::Flat | Class::Mubuf => Some(op),
        _ if reader.inst.mnemonic().starts_with("v_cvt_") => float8::translate_conversion(reader, op),
        _ => vector::translate_special(reader, op),
    }
}

impl OperandReader {
    /// A form without operands.
    fn empty_op(&self) -> MicroOp {
        MicroOp {
            handler: execute::unknown_instruction,
            body: MicroOpBody::None,
            sources: [SourceOperand::None; 3],
            target: DestOperand::None,
            scalar_target: DestOperand::None,
            mask_source: SourceOperand::None,
            modifiers: Modifiers::default(),
            immediate: 0,
            extra: None,
            is_apart: false,
            length: self.inst.len(),
            inst: self.inst,
        }
    }

    /// Whether the target has features of gfx12.5.
    fn is_gfx125(&self) -> bool {
        self.isa.has(Feature::Gfx1250Insts)
    }
}
