//! Scalar instructions.

use super::operands::OperandReader;
use crate::execute;
use crate::micro::{DestOperand, MicroOp, MicroOpBody, SourceOperand};
use crate::registers::M0;
use hotswap_isa::{Class, Implicit, Name};
use hotswap_semantics::{ScalarRow, ScalarUse};

/// Instructions that compute a value or a condition.
pub(super) fn translate_row(reader: &OperandReader, op: MicroOp, row: &'static ScalarRow) -> Option<MicroOp> {
    let writes_condition = reader.inst.entry().implicit_writes() >> Implicit::Scc as u32 & 1 != 0;
    let target = if reader.has(Name::Sdst) { reader.target_operand(Name::Sdst)? } else { DestOperand::None };
    let handler = match row.result {
        ScalarUse::SaveExec | ScalarUse::WriteExec => execute::scalar::update_exec,
        ScalarUse::Value(_) | ScalarUse::Condition => execute::scalar::compute_value,
    };
    let sources = match reader.inst.class()? {
        Class::Sopk => immediate_sources(reader, row)?,
        _ => ordered_sources(reader, target)?,
    };
    Some(MicroOp { handler, body: MicroOpBody::Scalar { row, writes_condition }, sources, target, ..op })
}

/// The sources in their order; what is left is the old value of the destination.
fn ordered_sources(reader: &OperandReader, target: DestOperand) -> Option<[SourceOperand; 3]> {
    let mut sources = [SourceOperand::None; 3];
    if let DestOperand::Scalar(slot) = target {
        sources[2] = SourceOperand::Scalar(slot);
    }
    for (place, (number, _)) in
        reader.numbered_operands().filter(|(_, operand)| is_source_name(operand.name)).enumerate().take(3)
    {
        sources[place] = reader.source_at(number)?;
    }
    Some(sources)
}

fn is_source_name(name: Name) -> bool {
    matches!(name, Name::Src0 | Name::Src1 | Name::Src2 | Name::Imm)
}

/// Old value of the register and immediate; moves have the immediate first.
fn immediate_sources(reader: &OperandReader, row: &ScalarRow) -> Option<[SourceOperand; 3]> {
    let immediate = SourceOperand::Constant(i64::from(reader.immediate_number(Name::Simm16) as i16) as u64);
    let register = reader.source_operand(Name::Sdst)?;
    let is_move = row.names.iter().any(|name| matches!(*name, "s_movk_i32" | "s_cmovk_i32"));
    Some(if is_move { [immediate, SourceOperand::None, register] } else { [register, immediate, SourceOperand::None] })
}

/// Instructions whose handler knows what to do with source, target and immediate.
pub(super) fn translate_control(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    let mut op = op;
    let entry = reader.inst.entry();
    if reader.has(Name::Sdst) {
        if reader.is_written(Name::Sdst) {
            op.target = reader.target_operand(Name::Sdst)?;
        } else {
            op.sources[0] = reader.source_operand(Name::Sdst)?;
        }
    }
    op.immediate = reader.immediate_number(Name::Simm16);
    match reader.inst.mnemonic() {
        "s_setreg_imm32_b32" => op.sources[0] = SourceOperand::Constant(reader.immediate_number(Name::Imm) as u64),
        "s_sendmsg_rtn_b32" | "s_sendmsg_rtn_b64" => op.immediate = reader.immediate_number(Name::Src0),
        "s_set_gpr_idx_on" => {
            op.sources[0] = reader.source_operand(Name::Src0)?;
            op.immediate = reader.immediate_number(Name::Src1);
        }
        "s_movrels_b64" | "s_movreld_b64" => {
            op.sources[0] = reader.source_operand(Name::Src0)?;
            op.immediate = 64;
        }
        _ if reader.has(Name::Src0) => op.sources[0] = reader.source_operand(Name::Src0)?,
        _ if entry.template().contains("m0") => op.sources[0] = SourceOperand::Scalar(M0),
        _ => {}
    }
    if reader.kind(Name::Simm16) == "SOPPBrTarget" {
        op.immediate = i64::from(op.immediate as i16) * 4;
    }
    Some(op)
}
