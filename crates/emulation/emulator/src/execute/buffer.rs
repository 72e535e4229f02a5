//! Accesses through buffer descriptors; on gfx9 and gfx10 the stack is one.

use super::data::{self, active_lanes};
use super::global::{self, ResolvedAddress};
use super::lane_words;
use super::lds::{register_of, target_of};
use super::{ExecContext, StepFault, StepFlow, StepResult, scalar_of};
use crate::buffer_resource::{BufferResource, LaneOffsets, ResourceLayout};
use crate::memory::LaneAddresses;
use crate::memory_operation::MemoryOperation;
use crate::micro::{BufferAddress, Extra, MicroOp, MicroOpBody, SourceOperand};
use crate::wave::WaveState;
use hotswap_semantics::LANES;

/// Base address of the descriptor of scratch, which kernels get in user SGPRs. No memory of the device is there.
pub(crate) const SCRATCH_WINDOW: u64 = 0xf000_0000_0000;

/// The bits of the base in the first half of a resource.
const BASE: u64 = (1 << 48) - 1;

fn buffer_of(op: &MicroOp) -> Result<BufferAddress, Box<StepFault>> {
    match op.extra.as_deref() {
        Some(Extra::Buffer(address)) => Ok(*address),
        _ => Err(StepFault::unknown(op, "")),
    }
}

/// The parts of a lane's address.
fn lane_offsets(wave: &WaveState, op: &MicroOp, buffer: &BufferAddress, lane: usize) -> LaneOffsets {
    let mut registers = match op.sources[0] {
        SourceOperand::Vector { register, .. } => register..register + 2,
        _ => 0..0,
    };
    let index = if buffer.has_index { registers.next() } else { None };
    let offset = if buffer.has_offset { registers.next() } else { None };
    LaneOffsets {
        index: index.map(|number| wave.lane(number, lane)),
        vector: offset.map_or(0, |number| wave.lane(number, lane)),
        immediate: op.immediate,
        scalar: scalar_of(wave, &buffer.offset) as u32,
        lane: lane as u32,
    }
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

/// Where scratch begins for each lane, if the resource is that of scratch, which no target has from gfx11 on.
fn scratch_start(wave: &WaveState, buffer: &BufferAddress) -> Option<u64> {
    let base = wave.pair(buffer.descriptor) & BASE;
    let scalar = u64::from(scalar_of(wave, &buffer.offset) as u32);
    let is_scratch = base >= SCRATCH_WINDOW && matches!(buffer.layout, ResourceLayout::Gfx9 | ResourceLayout::Gfx10);
    // The scalar offset counts bytes of all lanes.
    is_scratch.then(|| (base - SCRATCH_WINDOW + scalar) >> wave.lane_count().trailing_zeros())
}

/// The memory that an instruction accesses.
enum BufferTarget {
    /// Scratch of each lane, from an offset on.
    Scratch {
        start: u64,
    },
    Resource(BufferResource),
}

fn target_of_access(wave: &WaveState, op: &MicroOp, buffer: &BufferAddress) -> Result<BufferTarget, Box<StepFault>> {
    if let Some(start) = scratch_start(wave, buffer) {
        return Ok(BufferTarget::Scratch { start });
    }
    resource_at(wave, op, buffer.descriptor, buffer.layout).map(BufferTarget::Resource)
}

/// The resource in four scalar registers.
pub(crate) fn resource_at(
    wave: &WaveState,
    op: &MicroOp,
    slot: u8,
    layout: ResourceLayout,
) -> Result<BufferResource, Box<StepFault>> {
    let [low, high] = [slot, slot + 2].map(|slot| wave.pair(slot));
    let dwords = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32];
    BufferResource::decode(dwords, layout).map_err(|reason| StepFault::unknown(op, reason))
}

/// The place of a lane's whole access of `size` bytes; `None` where a byte of it is out of range.
fn place_of_whole(target: &BufferTarget, offsets: &LaneOffsets, size: u64) -> Option<ResolvedAddress> {
    match target {
        BufferTarget::Scratch { start } => {
            let offset = u64::from(offsets.vector).wrapping_add_signed(offsets.immediate).wrapping_add(*start);
            Some(ResolvedAddress::Scratch { owner: offsets.lane as usize, offset: offset & 0xffff_ffff })
        }
        BufferTarget::Resource(resource) => resource.address_of(offsets, 0, size).map(ResolvedAddress::Memory),
    }
}

/// Executes loads and stores of a buffer.
pub(crate) fn access_buffer(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Memory(operation) = op.body else { return Err(StepFault::unknown(op, "")) };
    let buffer = buffer_of(op)?;
    let target = target_of_access(step.wave, op, &buffer)?;
    if let Some(words) = lane_words::words_of(step, operation) {
        match target {
            BufferTarget::Scratch { start } => {
                let start = start.wrapping_add_signed(op.immediate);
                return lane_words::access_scratch(step, op, (operation.is_store, words), |wave, half| {
                    scratch_offsets(wave, op, &buffer, start, half)
                });
            }
            BufferTarget::Resource(ref resource) if resource.is_linear(buffer.has_index) => {
                if let Some(flow) = access_words_in_range(step, op, &buffer, resource, (operation.is_store, words))? {
                    return Ok(flow);
                }
            }
            BufferTarget::Resource(_) => {}
        }
    }
    for lane in active_lanes(step.wave.exec_mask()) {
        let offsets = lane_offsets(step.wave, op, &buffer, lane);
        match target {
            BufferTarget::Resource(ref resource) => access_by_words(step, op, operation, resource, &offsets)?,
            BufferTarget::Scratch { .. } => {
                if let Some(place) = place_of_whole(&target, &offsets, operation.bytes.into()) {
                    global::transfer_lane(step, op, operation, place, lane)?;
                }
            }
        }
    }
    Ok(StepFlow::Next)
}

/// Whole words of all lanes of a linear buffer; `None`, with nothing done, where the first or the last word of an active lane is out
/// of range. Those between are not, if these are.
fn access_words_in_range(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    buffer: &BufferAddress,
    resource: &BufferResource,
    (is_store, words): (bool, usize),
) -> Result<Option<StepFlow>, Box<StepFault>> {
    let mut addresses = [[0; LANES]; 2];
    for lane in active_lanes(step.wave.exec_mask()) {
        let offsets = lane_offsets(step.wave, op, buffer, lane);
        let last = resource.address_of(&offsets, 4 * (words as u64 - 1), 4);
        let (Some(address), Some(_)) = (resource.address_of(&offsets, 0, 4), last) else { return Ok(None) };
        addresses[lane / LANES][lane % LANES] = address;
    }
    for (half, lanes) in addresses.iter().enumerate().take(step.wave.halves) {
        lane_words::access_memory(step, op, (is_store, words), lanes, half)?;
    }
    Ok(Some(StepFlow::Next))
}

/// An access of one lane, word by word: each is in range or not. Words out of range are read as 0, and are not written.
fn access_by_words(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    operation: MemoryOperation,
    resource: &BufferResource,
    offsets: &LaneOffsets,
) -> Result<(), Box<StepFault>> {
    let (lane, size) = (offsets.lane as usize, usize::from(operation.bytes));
    let mut bytes = [0; data::LARGEST];
    if operation.is_store {
        bytes = data::bytes_to_store(step.wave, operation, register_of(op.sources[2], op)?, lane);
    }
    let word = size.min(4);
    for (number, part) in bytes[..size].chunks_mut(word).enumerate() {
        let distance = (number * word) as u64;
        let Some(address) = resource.address_of(offsets, distance, word as u64) else { continue };
        let place = ResolvedAddress::Memory(address);
        match operation.is_store {
            true => global::write_destination(step, place, part, lane)?,
            false => global::read_destination(step, place, part, lane)?,
        }
    }
    if !operation.is_store {
        data::put_loaded(step.wave, operation, target_of(op)?, lane, &bytes[..size]);
    }
    Ok(())
}

/// Executes an operation that reads, modifies and writes words of a buffer. It is in range as a whole or not at all.
pub(crate) fn update_buffer(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Atomic { row, returns } = op.body else { return Err(StepFault::unknown(op, "")) };
    let buffer = buffer_of(op)?;
    let target = target_of_access(step.wave, op, &buffer)?;
    let register = register_of(op.sources[2], op)?;
    let size = if row.is_wide { 8 } else { 4 };
    for lane in active_lanes(step.wave.exec_mask()) {
        let values = global::atomic_operands(step.wave, row, register, lane);
        let offsets = lane_offsets(step.wave, op, &buffer, lane);
        let old = match place_of_whole(&target, &offsets, size) {
            Some(place) => global::update_at(step, row, place, values, lane)?,
            None => 0,
        };
        if returns {
            data::put_old(step.wave, target_of(op)?, lane, row.is_wide, old);
        }
    }
    Ok(StepFlow::Next)
}
