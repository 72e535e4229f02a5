//! Accesses to LDS. Beyond its end reads give 0 and writes are dropped, as in hardware.

use super::data::{self, LARGEST, active_lanes};
use super::lane_words;
use super::{ExecContext, StepFault, StepFlow, StepResult};
use crate::fault::FaultKind;
use crate::micro::{DestOperand, MicroOp, MicroOpBody, SourceOperand};
use crate::registers::M0;
use crate::stepping::UNALIGNED_PAIR;
use crate::store_watch::StoredPlace;
use hotswap_semantics::LANES;
use std::sync::PoisonError;

/// The vector register of a source.
pub(crate) fn register_of(source: SourceOperand, op: &MicroOp) -> Result<u16, Box<StepFault>> {
    match source {
        SourceOperand::Vector { register, .. } => Ok(register),
        _ => Err(StepFault::unknown(op, "an operand that is no vector register")),
    }
}

/// The vector register of the target.
pub(crate) fn target_of(op: &MicroOp) -> Result<u16, Box<StepFault>> {
    match op.target {
        DestOperand::Vector { register, .. } => Ok(register),
        _ => Err(StepFault::unknown(op, "a target that is no vector register")),
    }
}

/// Reads bytes of LDS.
pub(crate) fn read_bytes(lds: &[u8], address: u32, into: &mut [u8]) {
    let start = address as usize;
    match lds.get(start..start + into.len()) {
        Some(bytes) => into.copy_from_slice(bytes),
        None => into.fill(0),
    }
}

/// Writes bytes of LDS, of a lane.
pub(crate) fn write_bytes(step: &mut ExecContext<'_>, address: u32, from: &[u8], lane: usize) {
    let start = address as usize;
    if let Some(bytes) = step.lds.get_mut(start..start + from.len()) {
        bytes.copy_from_slice(from);
        step.note_store(StoredPlace::Lds(address), from, lane);
    }
}

/// Writes a word of LDS, of a lane.
#[inline]
fn store_word(step: &mut ExecContext<'_>, address: u32, is_wide: bool, value: u64, lane: usize) {
    write_word(step.lds, address, is_wide, value);
    if step.wave.store_watch.is_some() && (address as usize) < step.lds.len() {
        step.note_store(StoredPlace::Lds(address), &value.to_le_bytes()[..if is_wide { 8 } else { 4 }], lane);
    }
}

#[inline]
fn read_word(lds: &[u8], address: u32, is_wide: bool) -> u64 {
    let Some(rest) = lds.get(address as usize..) else { return 0 };
    if is_wide {
        rest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    } else {
        rest.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes).into())
    }
}

#[inline]
fn write_word(lds: &mut [u8], address: u32, is_wide: bool, value: u64) {
    let Some(rest) = lds.get_mut(address as usize..) else { return };
    if is_wide {
        if let Some(bytes) = rest.first_chunk_mut() {
            *bytes = value.to_le_bytes();
        }
    } else if let Some(bytes) = rest.first_chunk_mut() {
        *bytes = (value as u32).to_le_bytes();
    }
}

/// Executes loads and stores of LDS.
pub(crate) fn access_lds(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Memory(operation) = op.body else { return Err(StepFault::unknown(op, "")) };
    let address = register_of(op.sources[0], op)?;
    if let Some(words) = lane_words::words_of(step, operation) {
        return match operation.is_store {
            true => lane_words::store_lds(step, op, words, address),
            false => lane_words::load_lds(step, op, words, address),
        };
    }
    let size = usize::from(operation.bytes);
    for lane in active_lanes(step.wave.exec_mask()) {
        let at = step.wave.lane(address, lane).wrapping_add(op.immediate as u32);
        if operation.is_store {
            let bytes = data::bytes_to_store(step.wave, operation, register_of(op.sources[1], op)?, lane);
            write_bytes(step, at, &bytes[..size], lane);
        } else {
            let mut bytes = [0; LARGEST];
            read_bytes(step.lds, at, &mut bytes[..size]);
            data::put_loaded(step.wave, operation, target_of(op)?, lane, &bytes[..size]);
        }
    }
    Ok(StepFlow::Next)
}

/// A fault where the stepping gives wrong data.
fn check_pairs(step: &ExecContext<'_>, op: &MicroOp, address: u16, is_wide: bool) -> Result<(), Box<StepFault>> {
    if !step.device.lacks_unaligned_pairs() {
        return Ok(());
    }
    let size = if is_wide { 8 } else { 4 };
    if active_lanes(step.wave.exec_mask()).all(|lane: usize| step.wave.lane(address, lane).is_multiple_of(size)) {
        return Ok(());
    }
    let (mnemonic, rule) = (op.inst.mnemonic(), UNALIGNED_PAIR);
    Err(StepFault::new(FaultKind::SteppingTrap { mnemonic, rule }))
}

/// Bytes of an element and distances of both accesses of a two-address instruction.
fn two_addresses(op: &MicroOp) -> (bool, [u32; 2]) {
    let is_wide = op.modifiers.clamp;
    let unit = if is_wide { 8 } else { 4 } * if op.modifiers.output != 0 { 64 } else { 1 };
    (is_wide, [op.immediate as u32 & 255, op.immediate as u32 >> 8 & 255].map(|offset| offset * unit))
}

pub(crate) fn load_two(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (is_wide, offsets) = two_addresses(op);
    let (address, target) = (register_of(op.sources[0], op)?, target_of(op)?);
    check_pairs(step, op, address, is_wide)?;
    lane_words::load_pair(step, target, is_wide, address, offsets);
    Ok(StepFlow::Next)
}

pub(crate) fn store_two(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (is_wide, offsets) = two_addresses(op);
    let address = register_of(op.sources[0], op)?;
    let values = [register_of(op.sources[1], op)?, register_of(op.sources[2], op)?];
    let lanes = step.wave.exec_mask();
    check_pairs(step, op, address, is_wide)?;
    // Which of several lanes is the last to store to a place is not documented: element by element, as two stores do.
    for (offset, register) in offsets.into_iter().zip(values) {
        for lane in active_lanes(lanes) {
            let value = data::atomic_operand(step.wave, register, lane, is_wide);
            store_word(step, step.wave.lane(address, lane).wrapping_add(offset), is_wide, value, lane);
        }
    }
    Ok(StepFlow::Next)
}

pub(crate) fn exchange_two(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (is_wide, offsets) = two_addresses(op);
    let (address, target) = (register_of(op.sources[0], op)?, target_of(op)?);
    let values = [register_of(op.sources[1], op)?, register_of(op.sources[2], op)?];
    let lanes = step.wave.exec_mask();
    check_pairs(step, op, address, is_wide)?;
    let mut olds = [[0; 2 * LANES]; 2];
    for number in 0..2 {
        for lane in active_lanes(lanes) {
            let at = step.wave.lane(address, lane).wrapping_add(offsets[number]);
            let new = data::atomic_operand(step.wave, values[number], lane, is_wide);
            olds[number][lane] = read_word(step.lds, at, is_wide);
            store_word(step, at, is_wide, new, lane);
        }
    }
    for (number, old) in olds.iter().enumerate() {
        let register = target + number as u16 * if is_wide { 2 } else { 1 };
        active_lanes(lanes).for_each(|lane| data::put_old(step.wave, register, lane, is_wide, old[lane]));
    }
    Ok(StepFlow::Next)
}

/// Read-modify-write. Before gfx11 `ds_cmpst` has the value that is compared first; the translation has put it last.
pub(crate) fn update_lds(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Atomic { row, returns } = op.body else { return Err(StepFault::unknown(op, "")) };
    let (address, value) = (register_of(op.sources[0], op)?, register_of(op.sources[1], op)?);
    for lane in active_lanes(step.wave.exec_mask()) {
        let at = step.wave.lane(address, lane).wrapping_add(op.immediate as u32);
        let operand = data::atomic_operand(step.wave, value, lane, row.is_wide);
        let compared = match row.compares {
            true => data::atomic_operand(step.wave, register_of(op.sources[2], op)?, lane, row.is_wide),
            false => 0,
        };
        let old = read_word(step.lds, at, row.is_wide);
        write_word(step.lds, at, row.is_wide, (row.update)(old, operand, compared));
        if returns {
            data::put_old(step.wave, target_of(op)?, lane, row.is_wide, old);
        }
    }
    Ok(StepFlow::Next)
}

/// `ds_append` and `ds_consume`: one addition of the number of active lanes; every lane gets the old value.
pub(crate) fn append_or_consume(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let target = target_of(op)?;
    let mask = step.wave.exec_mask();
    let at = (step.wave.scalars[usize::from(M0)] & 0xffff).wrapping_add(op.immediate as u32);
    let old = read_word(step.lds, at, false) as u32;
    let lanes = mask.count_ones();
    let new = if op.modifiers.clamp { old.wrapping_sub(lanes) } else { old.wrapping_add(lanes) };
    write_word(step.lds, at, false, new.into());
    active_lanes(mask).for_each(|lane| step.wave.set_lane(target, lane, old));
    Ok(StepFlow::Next)
}

/// Accesses at a place for each lane: M0 and four bytes a lane.
pub(crate) fn by_lane(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Memory(operation) = op.body else { return Err(StepFault::unknown(op, "")) };
    let base = step.wave.scalars[usize::from(M0)];
    // 20 bits from gfx12.5 on: LDS is larger there than 16 bits reach.
    let bits = if step.wave.lane_shift.is_some() { 0xf_ffff } else { 0xffff };
    for lane in active_lanes(step.wave.exec_mask()) {
        let at = (base.wrapping_add(4 * lane as u32) & bits).wrapping_add(op.immediate as u32);
        if operation.is_store {
            let value = step.wave.lane(register_of(op.sources[0], op)?, lane);
            store_word(step, at, false, value.into(), lane);
        } else {
            let value = read_word(step.lds, at, false) as u32;
            step.wave.set_lane(target_of(op)?, lane, value);
        }
    }
    Ok(StepFlow::Next)
}

/// `ds_gws_init`: the number of waves of the global barrier, less 1.
pub(crate) fn initialise_global_barrier(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let lane = active_lanes(step.wave.exec_mask()).next().unwrap_or(0);
    let waves = step.wave.lane(register_of(op.sources[1], op)?, lane).wrapping_add(1);
    step.device.global_barrier.lock().unwrap_or_else(PoisonError::into_inner).initialise(waves);
    Ok(StepFlow::Next)
}

/// `ds_gws_barrier`: waits for all waves.
pub(crate) fn global_barrier(step: &mut ExecContext<'_>, _: &MicroOp) -> StepResult {
    let mut barrier = step.device.global_barrier.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = *step.wave.global_phase.get_or_insert_with(|| barrier.arrive());
    if barrier.phase == waited {
        return Ok(StepFlow::Again);
    }
    step.wave.global_phase = None;
    Ok(StepFlow::Next)
}
