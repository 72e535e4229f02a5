//! Scalar loads.

use super::{ExecContext, StepFault, StepFlow, StepResult, buffer, scalar_of, writable_slot};
use crate::memory_operation::MemoryOperation;
use crate::micro::{DestOperand, Extra, MicroOp, MicroOpBody, SourceOperand};

/// Base and offsets: the first source is the base, the second an offset, the immediate another.
fn load_address(step: &ExecContext<'_>, op: &MicroOp) -> u64 {
    let base = scalar_of(step.wave, &op.sources[0]);
    let offset = u64::from(scalar_of(step.wave, &op.sources[1]) as u32);
    base.wrapping_add(offset << op.modifiers.output).wrapping_add_signed(op.immediate)
}

fn write_loaded(step: &mut ExecContext<'_>, op: &MicroOp, operation: MemoryOperation, bytes: &[u8]) -> StepResult {
    let DestOperand::Scalar(slot) = op.target else { return Err(StepFault::unknown(op, "")) };
    let slot = usize::from(writable_slot(slot));
    if operation.bytes < 4 {
        step.wave.scalars[slot] = super::data::extend_short(operation, bytes);
        return Ok(StepFlow::Next);
    }
    for (number, word) in bytes.chunks_exact(4).enumerate() {
        let value = word.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        step.wave.scalars[slot + number] = value;
    }
    Ok(StepFlow::Next)
}

/// `s_load`.
pub(crate) fn load_scalar(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Memory(operation) = op.body else { return Err(StepFault::unknown(op, "")) };
    let mut address = load_address(step, op);
    if operation.bytes >= 4 {
        address &= !3;
    }
    let mut bytes = [0; 64];
    let bytes = &mut bytes[..usize::from(operation.bytes)];
    step.memory.read(address, bytes).map_err(|fault| StepFault::from_memory_fault(fault, None))?;
    write_loaded(step, op, operation, bytes)
}

/// `s_buffer_load`: what is beyond the buffer reads as 0.
pub(crate) fn load_buffer(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Memory(operation) = op.body else { return Err(StepFault::unknown(op, "")) };
    let (SourceOperand::Scalar(slot), Some(Extra::Resource(layout))) = (op.sources[0], op.extra.as_deref()) else {
        return Err(StepFault::unknown(op, ""));
    };
    let resource = buffer::resource_at(step.wave, op, slot, *layout)?;
    let (mut base, size) = (resource.base(), resource.scalar_bytes());
    let scalar = u64::from(scalar_of(step.wave, &op.sources[1]) as u32) << op.modifiers.output;
    let mut offset = scalar.wrapping_add_signed(op.immediate);
    if operation.bytes >= 4 {
        (base, offset) = (base & !3, offset & !3);
    }
    let mut bytes = [0; 64];
    let bytes = &mut bytes[..usize::from(operation.bytes)];
    let step_bytes = usize::from(operation.bytes).min(4);
    for (number, part) in bytes.chunks_mut(step_bytes).enumerate() {
        let at = offset.wrapping_add((number * step_bytes) as u64);
        if at.checked_add(step_bytes as u64).is_some_and(|end| end <= size) {
            let address = base.wrapping_add(at);
            step.memory.read(address, part).map_err(|fault| StepFault::from_memory_fault(fault, None))?;
        }
    }
    write_loaded(step, op, operation, bytes)
}
