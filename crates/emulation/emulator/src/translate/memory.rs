//! Accesses to memory, scratch and LDS.

use super::operands::OperandReader;
use crate::buffer_resource::ResourceLayout;
use crate::execute::{self, asynchronous, buffer, global, lds, scalar_memory};
use crate::memory_operation::MemoryOperation;
use crate::micro::{BufferAddress, DestOperand, Extra, MicroOp, MicroOpBody, SourceOperand};
use hotswap_isa::{Class, Feature, Name, Slot};
use hotswap_semantics::AtomicRow;

/// Bit of the cache policy that scales offsets by the size of the access (gfx12.5).
const SCALE_OFFSET: u64 = 1 << 11;

pub(super) fn translate_access(reader: &OperandReader, op: MicroOp, operation: MemoryOperation) -> Option<MicroOp> {
    let op = MicroOp { body: MicroOpBody::Memory(operation), ..op };
    let bytes = u32::from(operation.bytes);
    match reader.inst.class()? {
        Class::Smem => translate_scalar(reader, op, bytes),
        Class::Ds => lds_access(reader, op, operation),
        Class::Flat => {
            let op = flat_operands(reader, op, bytes)?;
            let handler = match reader.inst.mnemonic() {
                name if name.starts_with("flat_") => global::access_flat,
                name if name.starts_with("scratch_") => global::access_scratch,
                name if name.starts_with("cluster_") => execute::uninterpreted::load_of_cluster,
                _ => global::access_global,
            };
            Some(MicroOp { handler, ..op })
        }
        Class::Mubuf => {
            Some(MicroOp { handler: buffer::access_buffer, ..buffer_operands(reader, op, operation.is_store)? })
        }
        _ => None,
    }
}

fn optional_source(reader: &OperandReader, name: Name) -> Option<SourceOperand> {
    if reader.has(name) { reader.source_operand(name) } else { Some(SourceOperand::None) }
}

/// The power of two that scales offsets.
fn offset_scale(reader: &OperandReader, bytes: u32) -> u8 {
    let scaled = reader.is_gfx125() && reader.inst.raw(Name::Cpol).unwrap_or(0) & SCALE_OFFSET != 0;
    if scaled { bytes.trailing_zeros() as u8 } else { 0 }
}

fn translate_scalar(reader: &OperandReader, op: MicroOp, bytes: u32) -> Option<MicroOp> {
    let mut op = op;
    op.target = reader.target_operand(Name::Sdst)?;
    op.sources = [reader.source_operand(Name::Sbase)?, optional_source(reader, Name::Soffset)?, SourceOperand::None];
    op.immediate = if reader.has(Name::Offset) { reader.immediate_number(Name::Offset) } else { 0 };
    op.modifiers.output = offset_scale(reader, bytes);
    let is_buffer = reader.inst.mnemonic().starts_with("s_buffer_");
    op.handler = if is_buffer { scalar_memory::load_buffer } else { scalar_memory::load_scalar };
    if is_buffer {
        op.extra = Some(Box::new(Extra::Resource(ResourceLayout::for_isa(reader.isa))));
    }
    Some(op)
}

/// A field as a signed number, or as an unsigned one.
fn offset_field(reader: &OperandReader, is_signed: bool) -> i64 {
    let raw = reader.inst.raw(Name::Offset).unwrap_or(0);
    let width: u32 = reader
        .inst
        .entry()
        .slot(Name::Offset)
        .map(Slot::pieces)
        .unwrap_or_default()
        .iter()
        .map(|piece| u32::from(piece.width))
        .sum();
    match (is_signed, width) {
        (true, 1..=63) => (raw << (64 - width)) as i64 >> (64 - width),
        _ => raw as i64,
    }
}

/// Copies between memory and LDS: the register that is named like a target, or like data, has the address in LDS.
pub(super) fn translate_async_copy(reader: &OperandReader, op: MicroOp, operation: MemoryOperation) -> Option<MicroOp> {
    let in_lds = reader.source_operand(if operation.is_store { Name::Vdata } else { Name::Vdst })?;
    let mut op = flat_address(reader, MicroOp { body: MicroOpBody::Memory(operation), ..op }, operation.bytes.into())?;
    op.sources[2] = in_lds;
    op.handler = match reader.inst.mnemonic() {
        name if name.starts_with("cluster_") => asynchronous::cluster_load_to_lds,
        _ if operation.is_store => asynchronous::store_from_lds,
        _ => asynchronous::load_to_lds,
    };
    Some(op)
}

/// Address, data and target of the flat family.
fn flat_operands(reader: &OperandReader, op: MicroOp, bytes: u32) -> Option<MicroOp> {
    let mut op = op;
    if reader.is_written(Name::Vdst) {
        op.target = reader.target_operand(Name::Vdst)?;
    } else if reader.has(Name::Vdst) {
        return None;
    }
    if reader.inst.entry().template().ends_with("lds") {
        return None;
    }
    op.sources[2] = optional_source(reader, Name::Vdata)?;
    flat_address(reader, op, bytes)
}

/// The address of the flat family: its parts, its offset and its scale.
fn flat_address(reader: &OperandReader, op: MicroOp, bytes: u32) -> Option<MicroOp> {
    let mut op = op;
    op.sources = [optional_source(reader, Name::Vaddr)?, optional_source(reader, Name::Saddr)?, op.sources[2]];
    let is_flat = reader.inst.mnemonic().starts_with("flat_");
    op.immediate = offset_field(reader, !is_flat || reader.isa.has(Feature::Gfx12Insts));
    op.modifiers.output = offset_scale(reader, bytes);
    // From gfx12.5 on an offset in a vector register has a sign.
    op.modifiers.clamp = reader.is_gfx125();
    Some(op)
}

fn buffer_operands(reader: &OperandReader, op: MicroOp, is_store: bool) -> Option<MicroOp> {
    let mut op = op;
    let template = reader.inst.entry().template();
    if template.contains("tfe") || template.ends_with("lds") {
        return None;
    }
    if reader.is_written(Name::Vdata) {
        op.target = reader.target_operand(Name::Vdata)?;
    }
    op.sources[0] = optional_source(reader, Name::Vaddr)?;
    if is_store || !matches!(op.body, MicroOpBody::Memory(_)) {
        op.sources[2] = reader.source_operand(Name::Vdata)?;
    }
    let SourceOperand::Scalar(descriptor) = reader.source_operand(Name::Srsrc)? else { return None };
    op.immediate = offset_field(reader, reader.isa.has(Feature::Gfx12Insts));
    let address = BufferAddress {
        descriptor,
        offset: reader.source_operand(Name::Soffset)?,
        has_index: template.contains("idxen"),
        has_offset: template.contains("offen"),
        layout: ResourceLayout::for_isa(reader.isa),
    };
    op.extra = Some(Box::new(Extra::Buffer(address)));
    Some(op)
}

pub(super) fn translate_atomic(reader: &OperandReader, op: MicroOp, row: &'static AtomicRow) -> Option<MicroOp> {
    let written = [Name::Vdst, Name::Vdata].into_iter().any(|name| reader.is_written(name));
    let op = MicroOp { body: MicroOpBody::Atomic { row, returns: written }, ..op };
    match reader.inst.class()? {
        Class::Ds => lds_atomic(reader, op),
        Class::Flat => {
            let op = flat_operands(reader, op, if row.is_wide { 8 } else { 4 })?;
            let is_flat = reader.inst.mnemonic().starts_with("flat_");
            Some(MicroOp { handler: if is_flat { global::update_flat } else { global::update_global }, ..op })
        }
        Class::Mubuf => Some(MicroOp { handler: buffer::update_buffer, ..buffer_operands(reader, op, true)? }),
        _ => None,
    }
}

/// Operands of LDS; global data share is not known.
fn lds_operands(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    let mut op = op;
    let is_barrier = reader.inst.mnemonic().starts_with("ds_gws_");
    if reader.has(Name::Gds) && reader.immediate_number(Name::Gds) != 0 && !is_barrier {
        return None;
    }
    if reader.is_written(Name::Vdst) {
        op.target = reader.target_operand(Name::Vdst)?;
    }
    op.sources = [
        optional_source(reader, Name::Addr)?,
        optional_source(reader, Name::Data0)?,
        optional_source(reader, Name::Data1)?,
    ];
    op.immediate = reader.inst.raw(Name::Offset).unwrap_or(0) as i64;
    Some(op)
}

fn lds_access(reader: &OperandReader, op: MicroOp, operation: MemoryOperation) -> Option<MicroOp> {
    let _ = operation;
    Some(MicroOp { handler: lds::access_lds, ..lds_operands(reader, op)? })
}

/// Before gfx11 the compared value, and always the mask of `ds_mskor`, is the first operand.
fn lds_atomic(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    let mut op = lds_operands(reader, op)?;
    let name = reader.inst.mnemonic();
    if name.starts_with("ds_cmpst_") || name.starts_with("ds_mskor") {
        op.sources.swap(1, 2);
    }
    Some(MicroOp { handler: lds::update_lds, ..op })
}

/// Two accesses: sizes and distances are in the modifiers.
pub(super) fn two_addresses(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    let mut op = lds_operands(reader, op)?;
    let [low, high] = [Name::Offset0, Name::Offset1].map(|name| reader.inst.raw(name).unwrap_or(0) as i64);
    let name = reader.inst.mnemonic();
    op.immediate = low | high << 8;
    op.modifiers.clamp = name.ends_with("64") && !name.ends_with("st64");
    op.modifiers.output = u8::from(name.contains("st64") || name.contains("stride64"));
    Some(op)
}

/// Instructions of LDS that move between lanes, count, or address by lane.
pub(super) fn translate_lds_lanes(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    let mut op = lds_operands(reader, op)?;
    let name = reader.inst.mnemonic();
    op.modifiers.clamp = matches!(name, "ds_consume" | "ds_bpermute_fi_b32");
    if name.contains("addtid") {
        op.body = MicroOpBody::Memory(crate::memory_operation::of_mnemonic(&name.replace("addtid_", ""))?);
        op.sources[0] = op.sources[1];
    }
    if let DestOperand::Scalar(_) = op.target {
        return None;
    }
    let _ = execute::no_effect;
    Some(op)
}
