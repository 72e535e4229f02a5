//! Accesses through buffer descriptors; on gfx9 and gfx10 the stack is one.

use super::data::{self, active_lanes};
use super::global::{self, ResolvedAddress};
use super::lane_words;
use super::lds::{register_of, target_of};
use super::{ExecContext, StepFault, StepFlow, StepResult, scalar_of};
use crate::memory::LaneAddresses;
use crate::micro::{BufferAddress, Extra, MicroOp, MicroOpBody, SourceOperand};
use crate::wave::WaveState;
use hotswap_semantics::LANES;

/// Base address of the descriptor of scratch, which kernels get in user SGPRs. No memory of the device is there.
pub(crate) const SCRATCH_WINDOW: u64 = 0xf000_0000_0000;

/// The first half of a descriptor: the base in the lower 48 bits.
const BASE: u64 = (1 << 48) - 1;

fn buffer_of(op: &MicroOp) -> Result<BufferAddress, Box<StepFault>> {
    match op.extra.as_deref() {
        Some(Extra::Buffer(address)) => Ok(*address),
        _ => Err(StepFault::unknown(op, "")),
    }
}

/// Index and offset of a lane.
fn index_and_offset(wave: &WaveState, op: &MicroOp, buffer: &BufferAddress, lane: usize) -> (u64, u64) {
    let SourceOperand::Vector { register, .. } = op.sources[0] else { return (0, 0) };
    match (buffer.has_index, buffer.has_offset) {
        (true, true) => (lane_register_value(0, wave, register, lane), lane_register_value(1, wave, register, lane)),
        (true, false) => (lane_register_value(0, wave, register, lane), 0),
        (false, true) => (0, lane_register_value(0, wave, register, lane)),
        (false, false) => (0, 0),
    }
}

fn lane_register_value(number: u16, wave: &WaveState, register: u16, lane: usize) -> u64 {
    u64::from(wave.lane(register + number, lane))
}

/// The offsets of half a wave in scratch, from where it begins.
#[inline]
fn scratch_offsets(wave: &WaveState, op: &MicroOp, buffer: &BufferAddress, start: u64, half: usize) -> LaneAddresses {
    let mut offsets = [start & 0xffff_ffff; LANES];
    if let (SourceOperand::Vector { register, .. }, true) = (op.sources[0], buffer.has_offset) {
        let block = wave.block(register + u16::from(buffer.has_index), half);
        for lane in 0..LANES {
            offsets[lane] = u64::from(block[lane]).wrapping_add(start) & 0xffff_ffff;
        }
    }
    offsets
}

/// Where scratch begins for each lane, if the descriptor is that of scratch.
fn scratch_start(wave: &WaveState, buffer: &BufferAddress) -> Option<u64> {
    let base = wave.pair(buffer.descriptor) & BASE;
    let scalar = u64::from(scalar_of(wave, &buffer.offset) as u32);
    // The scalar offset counts bytes of all lanes.
    (base >= SCRATCH_WINDOW).then(|| (base - SCRATCH_WINDOW + scalar) >> wave.lane_count().trailing_zeros())
}

/// Where an access of `size` bytes of a lane leads; `None` beyond the end of the buffer.
fn lane_destination(
    step: &ExecContext<'_>,
    op: &MicroOp,
    lane: usize,
    size: u64,
) -> Result<Option<ResolvedAddress>, Box<StepFault>> {
    let buffer = buffer_of(op)?;
    let wave = &*step.wave;
    let (low, high) = (wave.pair(buffer.descriptor), wave.pair(buffer.descriptor + 2));
    let scalar = u64::from(scalar_of(wave, &buffer.offset) as u32);
    let (index, offset) = index_and_offset(wave, op, &buffer, lane);
    let offset = offset.wrapping_add_signed(op.immediate);
    let base = low & BASE;
    if let Some(start) = scratch_start(wave, &buffer) {
        return Ok(Some(ResolvedAddress::Scratch { owner: lane, offset: offset.wrapping_add(start) & 0xffff_ffff }));
    }
    let (stride, records) = (low >> 48 & 0x3fff, high & 0xffff_ffff);
    if low >> 63 != 0 || high >> 55 & 1 != 0 {
        return Err(StepFault::unknown(op, "a swizzled buffer"));
    }
    let inside = if stride == 0 { offset + size <= records } else { index < records };
    let address = base.wrapping_add(scalar).wrapping_add(index * stride).wrapping_add(offset);
    Ok(inside.then_some(ResolvedAddress::Memory(address)))
}

/// Executes loads and stores of a buffer.
pub(crate) fn access_buffer(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Memory(operation) = op.body else { return Err(StepFault::unknown(op, "")) };
    if let Some(words) = lane_words::words_of(step, operation) {
        let buffer = buffer_of(op)?;
        if let Some(start) = scratch_start(step.wave, &buffer) {
            let start = start.wrapping_add_signed(op.immediate);
            return lane_words::access_scratch(step, op, (operation.is_store, words), |wave, half| {
                scratch_offsets(wave, op, &buffer, start, half)
            });
        }
    }
    let size = usize::from(operation.bytes);
    for lane in active_lanes(step.wave.exec_mask()) {
        match lane_destination(step, op, lane, size as u64)? {
            Some(destination) => global::transfer_lane(step, op, operation, destination, lane)?,
            None if operation.is_store => {}
            None => data::put_loaded(step.wave, operation, target_of(op)?, lane, &[0; data::LARGEST][..size]),
        }
    }
    Ok(StepFlow::Next)
}

/// Executes an operation that reads, modifies and writes words of a buffer.
pub(crate) fn update_buffer(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Atomic { row, returns } = op.body else { return Err(StepFault::unknown(op, "")) };
    let register = register_of(op.sources[2], op)?;
    let size = if row.is_wide { 8 } else { 4 };
    for lane in active_lanes(step.wave.exec_mask()) {
        let values = global::atomic_operands(step.wave, row, register, lane);
        let old = match lane_destination(step, op, lane, size)? {
            Some(destination) => global::update_at(step, row, destination, values, lane)?,
            None => 0,
        };
        if returns {
            data::put_old(step.wave, target_of(op)?, lane, row.is_wide, old);
        }
    }
    Ok(StepFlow::Next)
}
