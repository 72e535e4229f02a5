//! Accesses to memory, scratch and flat addresses.

use super::data::{self, LARGEST, active_lanes};
use super::lane_words;
use super::lds::{self, register_of, target_of};
use super::{ExecContext, StepFault, StepFlow, StepResult, scalar_of};
use crate::fault::FaultKind;
use crate::memory::LaneAddresses;
use crate::memory_operation::MemoryOperation;
use crate::micro::{MicroOp, MicroOpBody, SourceOperand};
use crate::store_watch::StoredPlace;
use crate::wave::WaveState;
use crate::{PRIVATE_APERTURE, SHARED_APERTURE};
use hotswap_semantics::{AtomicRow, BITS, LANES};

/// Where an address leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResolvedAddress {
    /// Memory of the device.
    Memory(u64),
    Lds(u32),
    /// Scratch of a lane, and an offset in it.
    Scratch {
        owner: usize,
        offset: u64,
    },
}

/// The destination of a flat address.
fn flat_destination(wave: &WaveState, address: u64, lane: usize) -> ResolvedAddress {
    if address >> 32 == SHARED_APERTURE >> 32 {
        return ResolvedAddress::Lds(address as u32);
    }
    match wave.lane_shift {
        None if address >> 32 == PRIVATE_APERTURE >> 32 => {
            ResolvedAddress::Scratch { owner: lane, offset: address & 0xffff_ffff }
        }
        // The number of the lane is above the aperture's bits.
        Some(shift) if address & !(63 << shift) & !0xffff_ffff == PRIVATE_APERTURE => {
            ResolvedAddress::Scratch { owner: (address >> shift & 63) as usize, offset: address & 0xffff_ffff }
        }
        _ => ResolvedAddress::Memory(address),
    }
}

/// Address of a lane: the first source is the vector part, the second the scalar one. With a scalar part of 64 bits
/// the vector part is an offset of 32.
pub(crate) fn lane_address(wave: &WaveState, op: &MicroOp, lane: usize) -> u64 {
    let vector = |wide: bool| match op.sources[0] {
        SourceOperand::Vector { register, .. } if wide => wave.lane_pair(register, lane),
        SourceOperand::Vector { register, .. } => wave.lane(register, lane).into(),
        _ => 0,
    };
    let base = match op.sources[1] {
        SourceOperand::None => vector(true),
        ref scalar => {
            let offset = vector(false);
            let offset = if op.modifiers.clamp { offset as u32 as i32 as u64 } else { offset };
            scalar_of(wave, scalar).wrapping_add(offset << op.modifiers.output)
        }
    };
    base.wrapping_add_signed(op.immediate)
}

/// Offset in scratch: both parts have 32 bits.
fn scratch_offset(wave: &WaveState, op: &MicroOp, lane: usize) -> u64 {
    let vector = match op.sources[0] {
        SourceOperand::Vector { register, .. } => wave.lane(register, lane),
        _ => 0,
    };
    let scalar = scalar_of(wave, &op.sources[1]) as u32;
    let sum = (vector << op.modifiers.output).wrapping_add(scalar).wrapping_add(op.immediate as u32);
    sum.into()
}

fn scratch_range(
    wave: &WaveState,
    owner: usize,
    offset: u64,
    size: usize,
) -> Result<std::ops::Range<usize>, FaultKind> {
    let limit = wave.scratch_size;
    if offset + size as u64 > u64::from(limit) || owner >= wave.lane_count() {
        return Err(FaultKind::Scratch { offset, size: limit });
    }
    let start = owner * limit as usize + offset as usize;
    Ok(start..start + size)
}

/// Reads from wherever the address leads.
pub(crate) fn read_destination(
    step: &ExecContext<'_>,
    from: ResolvedAddress,
    into: &mut [u8],
    lane: usize,
) -> Result<(), Box<StepFault>> {
    match from {
        ResolvedAddress::Memory(address) => {
            step.memory.read(address, into).map_err(|fault| StepFault::from_memory_fault(fault, Some(lane)))
        }
        ResolvedAddress::Lds(address) => {
            lds::read_bytes(step.lds, address, into);
            Ok(())
        }
        ResolvedAddress::Scratch { owner, offset } => {
            let range =
                scratch_range(step.wave, owner, offset, into.len()).map_err(|kind| fault_in_lane(kind, lane))?;
            into.copy_from_slice(&step.wave.scratch[range]);
            Ok(())
        }
    }
}

fn fault_in_lane(kind: FaultKind, lane: usize) -> Box<StepFault> {
    Box::new(StepFault { kind, lane: Some(lane as u32) })
}

/// Writes to wherever the address leads.
pub(crate) fn write_destination(
    step: &mut ExecContext<'_>,
    to: ResolvedAddress,
    from: &[u8],
    lane: usize,
) -> Result<(), Box<StepFault>> {
    match to {
        ResolvedAddress::Memory(address) => {
            step.note_store(StoredPlace::Memory(address), from, lane);
            step.memory.write(address, from).map_err(|fault| StepFault::from_memory_fault(fault, Some(lane)))
        }
        ResolvedAddress::Lds(address) => {
            lds::write_bytes(step, address, from, lane);
            Ok(())
        }
        ResolvedAddress::Scratch { owner, offset } => {
            let range =
                scratch_range(step.wave, owner, offset, from.len()).map_err(|kind| fault_in_lane(kind, lane))?;
            step.wave.scratch[range].copy_from_slice(from);
            Ok(())
        }
    }
}

/// A load or store of one lane.
pub(crate) fn transfer_lane(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    operation: MemoryOperation,
    place: ResolvedAddress,
    lane: usize,
) -> Result<(), Box<StepFault>> {
    let size = usize::from(operation.bytes);
    if operation.is_store {
        let bytes = data::bytes_to_store(step.wave, operation, register_of(op.sources[2], op)?, lane);
        return write_destination(step, place, &bytes[..size], lane);
    }
    let mut bytes = [0; LARGEST];
    read_destination(step, place, &mut bytes[..size], lane)?;
    data::put_loaded(step.wave, operation, target_of(op)?, lane, &bytes[..size]);
    Ok(())
}

/// Loads are done in two passes where the address registers are overwritten: each lane reads its own registers only, so
/// lane after lane is enough.
fn access_lanes(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    place: fn(&WaveState, &MicroOp, usize) -> ResolvedAddress,
) -> StepResult {
    let MicroOpBody::Memory(operation) = op.body else { return Err(StepFault::unknown(op, "")) };
    if operation.is_word() {
        return access_words(step, op, operation.is_store, place);
    }
    for lane in active_lanes(step.wave.exec_mask()) {
        let destination = place(step.wave, op, lane);
        transfer_lane(step, op, operation, destination, lane)?;
    }
    Ok(StepFlow::Next)
}

/// The same for whole words; most are in memory.
#[inline]
fn access_words(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    is_store: bool,
    place: fn(&WaveState, &MicroOp, usize) -> ResolvedAddress,
) -> StepResult {
    let register = if is_store { register_of(op.sources[2], op)? } else { target_of(op)? };
    for lane in active_lanes(step.wave.exec_mask()) {
        let destination = place(step.wave, op, lane);
        let ResolvedAddress::Memory(address) = destination else {
            let MicroOpBody::Memory(operation) = op.body else { return Err(StepFault::unknown(op, "")) };
            transfer_lane(step, op, operation, destination, lane)?;
            continue;
        };
        if is_store {
            let value = step.wave.lane(register, lane);
            step.note_store(StoredPlace::Memory(address), &value.to_le_bytes(), lane);
            step.memory.write_u32(address, value).map_err(|one| global_access_fault(one, lane))?;
        } else {
            let value = step.memory.read_u32(address).map_err(|one| global_access_fault(one, lane))?;
            step.wave.set_lane(register, lane, value);
        }
    }
    Ok(StepFlow::Next)
}

fn global_access_fault(fault: crate::MemoryFault, lane: usize) -> Box<StepFault> {
    StepFault::from_memory_fault(fault, Some(lane))
}

/// Whole words of all lanes. `None` where some lane's address leads elsewhere than to memory.
fn access_together(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    is_flat: bool,
) -> Result<Option<StepFlow>, Box<StepFault>> {
    let MicroOpBody::Memory(operation) = op.body else { return Ok(None) };
    let Some(words) = lane_words::words_of(step, operation) else { return Ok(None) };
    match step.wave.halves {
        1 => access_halves::<1>(step, op, (operation.is_store, words), is_flat),
        _ => access_halves::<2>(step, op, (operation.is_store, words), is_flat),
    }
}

/// Words of all lanes, in blocks of 32.
fn access_halves<const HALVES: usize>(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    access: (bool, usize),
    is_flat: bool,
) -> Result<Option<StepFlow>, Box<StepFault>> {
    let mut addresses = [[0; LANES]; HALVES];
    for (half, lanes) in addresses.iter_mut().enumerate() {
        lane_words::lane_addresses(step.wave, op, half, lanes);
        if is_flat && leads_elsewhere(step.wave, lanes, half) {
            return Ok(None);
        }
    }
    for (half, lanes) in addresses.iter().enumerate() {
        lane_words::access_memory(step, op, access, lanes, half)?;
    }
    Ok(Some(StepFlow::Next))
}

/// Whether the address of an active lane is in an aperture.
fn leads_elsewhere(wave: &WaveState, addresses: &LaneAddresses, half: usize) -> bool {
    let exec = wave.exec_half(half);
    (0..LANES)
        .filter(|lane| exec & BITS[*lane] != 0)
        .any(|lane| !matches!(flat_destination(wave, addresses[lane], LANES * half + lane), ResolvedAddress::Memory(_)))
}

pub(crate) fn access_global(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    if let Some(flow) = access_together(step, op, false)? {
        return Ok(flow);
    }
    access_lanes(step, op, |wave, op, lane| ResolvedAddress::Memory(lane_address(wave, op, lane)))
}

pub(crate) fn access_flat(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    if let Some(flow) = access_together(step, op, true)? {
        return Ok(flow);
    }
    access_lanes(step, op, |wave, op, lane| flat_destination(wave, lane_address(wave, op, lane), lane))
}

pub(crate) fn access_scratch(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Memory(operation) = op.body else { return Err(StepFault::unknown(op, "")) };
    if let Some(words) = lane_words::words_of(step, operation) {
        let access = (operation.is_store, words);
        return lane_words::access_scratch(step, op, access, |wave, half| {
            std::array::from_fn(|lane| scratch_offset(wave, op, LANES * half + lane))
        });
    }
    access_lanes(step, op, |wave, op, lane| ResolvedAddress::Scratch {
        owner: lane,
        offset: scratch_offset(wave, op, lane),
    })
}

/// Read-modify-write anywhere; returns the old value.
pub(crate) fn update_at(
    step: &mut ExecContext<'_>,
    row: &AtomicRow,
    place: ResolvedAddress,
    (operand, compared): (u64, u64),
    lane: usize,
) -> Result<u64, Box<StepFault>> {
    let size = if row.is_wide { 8 } else { 4 };
    if let ResolvedAddress::Memory(address) = place {
        if address % size != 0 {
            return Err(fault_in_lane(FaultKind::Misaligned { address, size: size as u32 }, lane));
        }
        let old = match row.is_wide {
            true => step.memory.update_u64(address, &mut |old| (row.update)(old, operand, compared)),
            false => step
                .memory
                .update_u32(address, &mut |old| (row.update)(old.into(), operand, compared) as u32)
                .map(u64::from),
        };
        return old.map_err(|fault| StepFault::from_memory_fault(fault, Some(lane)));
    }
    let mut bytes = [0; 8];
    let bytes = &mut bytes[..size as usize];
    read_destination(step, place, bytes, lane)?;
    let old = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let new = (row.update)(old, operand, compared).to_le_bytes();
    write_destination(step, place, &new[..size as usize], lane)?;
    Ok(old)
}

/// Operand and compared value of a lane: the compared one follows in the next registers.
pub(crate) fn atomic_operands(wave: &WaveState, row: &AtomicRow, register: u16, lane: usize) -> (u64, u64) {
    let second = register + if row.is_wide { 2 } else { 1 };
    let compared = if row.compares { data::atomic_operand(wave, second, lane, row.is_wide) } else { 0 };
    (data::atomic_operand(wave, register, lane, row.is_wide), compared)
}

fn update_lanes(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    place: fn(&WaveState, &MicroOp, usize) -> ResolvedAddress,
) -> StepResult {
    let MicroOpBody::Atomic { row, returns } = op.body else { return Err(StepFault::unknown(op, "")) };
    let register = register_of(op.sources[2], op)?;
    for lane in active_lanes(step.wave.exec_mask()) {
        let values = atomic_operands(step.wave, row, register, lane);
        let destination = place(step.wave, op, lane);
        let old = update_at(step, row, destination, values, lane)?;
        if returns {
            data::put_old(step.wave, target_of(op)?, lane, row.is_wide, old);
        }
    }
    Ok(StepFlow::Next)
}

pub(crate) fn update_global(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    update_lanes(step, op, |wave, op, lane| ResolvedAddress::Memory(lane_address(wave, op, lane)))
}

pub(crate) fn update_flat(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    update_lanes(step, op, |wave, op, lane| flat_destination(wave, lane_address(wave, op, lane), lane))
}
