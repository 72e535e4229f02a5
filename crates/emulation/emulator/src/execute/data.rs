//! Values of one lane on their way between registers and memory.

use crate::memory_operation::{DataHalf, MemoryOperation};
use crate::wave::WaveState;

/// Bytes of the largest access of a lane.
pub(crate) const LARGEST: usize = 16;

/// Puts loaded bytes into registers.
#[inline]
pub(crate) fn put_loaded(wave: &mut WaveState, operation: MemoryOperation, register: u16, lane: usize, bytes: &[u8]) {
    if let (4, DataHalf::Whole, Ok(word)) = (operation.bytes, operation.half, bytes.try_into()) {
        return wave.set_lane(register, lane, u32::from_le_bytes(word));
    }
    if operation.bytes < 4 {
        let value = extend_short(operation, bytes);
        let old = wave.lane(register, lane);
        let new = match operation.half {
            DataHalf::Whole => value,
            DataHalf::Low => old & 0xffff_0000 | value & 0xffff,
            DataHalf::High => old & 0xffff | value << 16,
        };
        return wave.set_lane(register, lane, new);
    }
    for (number, word) in bytes.chunks_exact(4).enumerate() {
        let value = word.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        wave.set_lane(register + number as u16, lane, value);
    }
}

/// A short value with zeros or its sign.
pub(crate) fn extend_short(operation: MemoryOperation, bytes: &[u8]) -> u32 {
    let raw = bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
    match (operation.bytes, operation.signed) {
        (1, true) => raw as i8 as u32,
        (2, true) => raw as i16 as u32,
        _ => raw,
    }
}

/// The bytes that a store writes.
#[inline]
pub(crate) fn bytes_to_store(
    wave: &WaveState,
    operation: MemoryOperation,
    register: u16,
    lane: usize,
) -> [u8; LARGEST] {
    let mut bytes = [0; LARGEST];
    if operation.bytes < 4 {
        let value = wave.lane(register, lane);
        let value = if operation.half == DataHalf::High { value >> 16 } else { value };
        bytes[..4].copy_from_slice(&value.to_le_bytes());
        return bytes;
    }
    for (number, word) in bytes.chunks_exact_mut(4).take(usize::from(operation.bytes) / 4).enumerate() {
        word.copy_from_slice(&wave.lane(register + number as u16, lane).to_le_bytes());
    }
    bytes
}

pub(crate) fn active_lanes(mask: u64) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (lane < 64).then_some(lane as usize)
    })
}

/// The value of a read-modify-write operand in a lane.
pub(crate) fn atomic_operand(wave: &WaveState, register: u16, lane: usize, is_wide: bool) -> u64 {
    if is_wide { wave.lane_pair(register, lane) } else { wave.lane(register, lane).into() }
}

/// Puts an old value of memory into registers.
pub(crate) fn put_old(wave: &mut WaveState, register: u16, lane: usize, is_wide: bool, value: u64) {
    wave.set_lane(register, lane, value as u32);
    if is_wide {
        wave.set_lane(register + 1, lane, (value >> 32) as u32);
    }
}
