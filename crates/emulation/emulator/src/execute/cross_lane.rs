//! Instructions that move data between lanes, and between lanes and scalars.

use super::data::active_lanes;
use super::lds::{register_of, target_of};
use super::{ExecContext, StepFault, StepFlow, StepResult, lanes_of, scalar_of, writable_slot};
use crate::micro::{DestOperand, MicroOp, SourceOperand};
use crate::registers::M0;
use crate::wave::WaveState;
use hotswap_semantics::LANES;

/// The value of a source in a lane.
fn source_value(wave: &WaveState, source: &SourceOperand, lane: usize) -> u32 {
    let mut space = [0; LANES];
    let shift = if matches!(source, SourceOperand::Vector { high: true, .. }) { 16 } else { 0 };
    lanes_of(wave, source, lane / LANES, &mut space)[lane % LANES] >> shift
}

fn set_scalar(step: &mut ExecContext<'_>, op: &MicroOp, value: u32) -> StepResult {
    let DestOperand::Scalar(slot) = op.target else { return Err(StepFault::unknown(op, "")) };
    step.wave.scalars[usize::from(writable_slot(slot))] = value;
    Ok(StepFlow::Next)
}

/// The first active lane, lane 0 if none is.
pub(crate) fn read_first_lane(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let lane = active_lanes(step.wave.exec_mask()).next().unwrap_or(0);
    let value = source_value(step.wave, &op.sources[0], lane);
    set_scalar(step, op, value)
}

pub(crate) fn read_lane(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let lane = scalar_of(step.wave, &op.sources[1]) as usize % step.wave.lane_count();
    let value = source_value(step.wave, &op.sources[0], lane);
    set_scalar(step, op, value)
}

pub(crate) fn write_lane(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let lane = scalar_of(step.wave, &op.sources[1]) as usize % step.wave.lane_count();
    let value = scalar_of(step.wave, &op.sources[0]) as u32;
    let target = target_of(op)?;
    step.wave.set_lane(target, lane, value);
    Ok(StepFlow::Next)
}

/// Bits of a mask below each lane; `lower` counts those of the first 32 lanes.
fn count_below(step: &mut ExecContext<'_>, op: &MicroOp, lower: bool) -> StepResult {
    let target = target_of(op)?;
    for lane in active_lanes(step.wave.exec_mask()) {
        let below = match (lower, lane / LANES) {
            (true, 1) => u32::MAX,
            (false, 0) => 0,
            _ => (1 << (lane % LANES)) - 1,
        };
        let mask = source_value(step.wave, &op.sources[0], lane);
        let sum = (mask & below).count_ones().wrapping_add(source_value(step.wave, &op.sources[1], lane));
        step.wave.set_lane(target, lane, sum);
    }
    Ok(StepFlow::Next)
}

pub(crate) fn count_below_low(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    count_below(step, op, true)
}

pub(crate) fn count_below_high(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    count_below(step, op, false)
}

/// Every active lane gets the value of another one, or of none.
fn gather_lanes(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    source: u16,
    from: impl Fn(&WaveState, usize) -> Option<usize>,
) -> StepResult {
    let target = target_of(op)?;
    let wave = &mut *step.wave;
    let exec = wave.exec_mask();
    let new: Vec<(usize, Option<u32>)> =
        active_lanes(exec).map(|lane| (lane, from(wave, lane).map(|from| wave.lane(source, from)))).collect();
    for (lane, value) in new {
        if let Some(value) = value {
            wave.set_lane(target, lane, value);
        }
    }
    Ok(StepFlow::Next)
}

/// Permutation in rows of 16 by selectors in two scalars; `crossed` reads from the other row of a pair.
fn permute_rows(step: &mut ExecContext<'_>, op: &MicroOp, crossed: bool) -> StepResult {
    let source = register_of(op.sources[0], op)?;
    let low = scalar_of(step.wave, &op.sources[1]) as u32;
    let high = scalar_of(step.wave, &op.sources[2]) as u32;
    let selectors = u64::from(low) | u64::from(high) << 32;
    let (fetch_inactive, bound_control) = (op.modifiers.select & 1 != 0, op.modifiers.select & 2 != 0);
    let exec = step.wave.exec_mask();
    let target = target_of(op)?;
    let new: Vec<(usize, u32)> = active_lanes(exec)
        .filter_map(|lane| {
            let valid = fetch_inactive || exec >> permuted_source_lane(lane, crossed, selectors) & 1 != 0;
            match (valid, bound_control) {
                (true, _) => Some((lane, step.wave.lane(source, permuted_source_lane(lane, crossed, selectors)))),
                (false, true) => Some((lane, 0)),
                (false, false) => None,
            }
        })
        .collect();
    new.into_iter().for_each(|(lane, value)| step.wave.set_lane(target, lane, value));
    Ok(StepFlow::Next)
}

fn permuted_source_lane(lane: usize, crossed: bool, selectors: u64) -> usize {
    let row = if crossed { (lane & !15) ^ 16 } else { lane & !15 };
    row | (selectors >> (4 * (lane & 15)) & 15) as usize
}

pub(crate) fn permute_row(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    permute_rows(step, op, false)
}

pub(crate) fn permute_row_crossed(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    permute_rows(step, op, true)
}

/// The same with a selector in each lane.
fn permute_rows_by_lane(step: &mut ExecContext<'_>, op: &MicroOp, crossed: usize) -> StepResult {
    let source = register_of(op.sources[0], op)?;
    let selector = register_of(op.sources[1], op)?;
    let (fetch_inactive, bound_control) = (op.modifiers.select & 1 != 0, op.modifiers.select & 2 != 0);
    let (exec, target) = (step.wave.exec_mask(), target_of(op)?);
    let new: Vec<(usize, u32)> = active_lanes(exec)
        .filter_map(|lane| {
            let from = (lane & !15) ^ crossed | (step.wave.lane(selector, lane) & 15) as usize;
            match (fetch_inactive || exec >> from & 1 != 0, bound_control) {
                (true, _) => Some((lane, step.wave.lane(source, from))),
                (false, true) => Some((lane, 0)),
                (false, false) => None,
            }
        })
        .collect();
    new.into_iter().for_each(|(lane, value)| step.wave.set_lane(target, lane, value));
    Ok(StepFlow::Next)
}

pub(crate) fn permute_row_variable(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    permute_rows_by_lane(step, op, 0)
}

pub(crate) fn permute_row_crossed_variable(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    permute_rows_by_lane(step, op, 16)
}

/// The halves of a wave of 64 lanes exchanged. Inactive lanes are read.
pub(crate) fn exchange_halves(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let source = register_of(op.sources[0], op)?;
    let lanes = step.wave.lane_count();
    gather_lanes(step, op, source, |_, lane| Some(if lanes == 64 { lane ^ 32 } else { lane }))
}

/// `ds_bpermute`: each lane reads the lane that its address names, 0 from inactive ones.
pub(crate) fn permute_backward(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (address, source) = (register_of(op.sources[0], op)?, register_of(op.sources[1], op)?);
    let (target, offset) = (target_of(op)?, op.immediate as u32);
    let (exec, lanes) = (step.wave.exec_mask(), step.wave.lane_count());
    // From gfx10 on waves of 64 lanes permute within each half, unless the lane's number lacks such a limit.
    let wave = &mut *step.wave;
    let new: Vec<(usize, u32)> = active_lanes(exec)
        .map(|lane| {
            let from = (wave.lane(address, lane).wrapping_add(offset) / 4) as usize % lanes;
            let read = op.modifiers.clamp || exec >> from & 1 != 0;
            (lane, if read { wave.lane(source, from) } else { 0 })
        })
        .collect();
    new.into_iter().for_each(|(lane, value)| wave.set_lane(target, lane, value));
    Ok(StepFlow::Next)
}

/// `ds_permute`: each lane writes the lane that its address names; lanes that none writes get 0.
pub(crate) fn permute_forward(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (address, source) = (register_of(op.sources[0], op)?, register_of(op.sources[1], op)?);
    let (target, offset) = (target_of(op)?, op.immediate as u32);
    let (exec, lanes) = (step.wave.exec_mask(), step.wave.lane_count());
    let wave = &mut *step.wave;
    let mut new = [0; 64];
    for lane in active_lanes(exec) {
        let to = (wave.lane(address, lane).wrapping_add(offset) / 4) as usize % lanes;
        new[to] = wave.lane(source, lane);
    }
    active_lanes(exec).for_each(|lane| wave.set_lane(target, lane, new[lane]));
    Ok(StepFlow::Next)
}

/// `ds_swizzle`: a pattern in the offset. Inactive lanes give 0.
pub(crate) fn swizzle_lanes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (source, target) = (register_of(op.sources[0], op)?, target_of(op)?);
    let pattern = op.immediate as usize;
    let exec = step.wave.exec_mask();
    let from = |lane: usize| match pattern {
        _ if pattern & 0x8000 == 0 => {
            let (and, or, xor) = (pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31);
            Some(lane & 32 | ((lane & and | or) ^ xor) & 31)
        }
        _ if pattern & 0xff00 == 0x8000 => Some(lane & !3 | pattern >> (2 * (lane & 3)) & 3),
        _ if pattern & 0xf000 == 0xc000 => {
            let (mask, by) = (pattern & 31, pattern >> 5 & 31);
            let moved = if pattern & 0x400 == 0 { lane + by } else { lane.wrapping_sub(by) };
            Some(lane & 32 | lane & mask | moved & !mask & 31)
        }
        _ => None,
    };
    let wave = &mut *step.wave;
    let mut new = Vec::with_capacity(64);
    for lane in active_lanes(exec) {
        let Some(from) = from(lane) else { return Err(StepFault::unknown(op, "the pattern")) };
        new.push((lane, if exec >> from & 1 != 0 { wave.lane(source, from) } else { 0 }));
    }
    new.into_iter().for_each(|(lane, value)| wave.set_lane(target, lane, value));
    Ok(StepFlow::Next)
}

pub(crate) fn swap_registers(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (first, second) = (target_of(op)?, register_of(op.sources[0], op)?);
    for lane in active_lanes(step.wave.exec_mask()) {
        let (a, b) = (step.wave.lane(first, lane), step.wave.lane(second, lane));
        step.wave.set_lane(first, lane, b);
        step.wave.set_lane(second, lane, a);
    }
    Ok(StepFlow::Next)
}

/// Halves of registers, which may be those of one register.
pub(crate) fn swap_halves(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let DestOperand::Vector { register: target, high: is_target_high } = op.target else {
        return Err(StepFault::unknown(op, "a target that is no vector register"));
    };
    let source = register_of(op.sources[0], op)?;
    let is_source_high = matches!(op.sources[0], SourceOperand::Vector { high: true, .. });
    for lane in active_lanes(step.wave.exec_mask()) {
        let first = half_of(step.wave.lane(target, lane), is_target_high);
        let second = half_of(step.wave.lane(source, lane), is_source_high);
        set_half(step.wave, target, lane, HalfValue { value: second, is_high: is_target_high });
        set_half(step.wave, source, lane, HalfValue { value: first, is_high: is_source_high });
    }
    Ok(StepFlow::Next)
}

/// Sixteen bits, and the half of a register that they belong to.
struct HalfValue {
    value: u32,
    is_high: bool,
}

fn half_of(word: u32, is_high: bool) -> u32 {
    if is_high { word >> 16 } else { word & 0xffff }
}

fn set_half(wave: &mut WaveState, register: u16, lane: usize, half: HalfValue) {
    let old = wave.lane(register, lane);
    let word = if half.is_high { old & 0xffff | half.value << 16 } else { old & 0xffff_0000 | half.value };
    wave.set_lane(register, lane, word);
}

/// A vector register whose number M0 adds to.
fn relative_register(step: &ExecContext<'_>, op: &MicroOp, register: u16, add: u32) -> Result<u16, Box<StepFault>> {
    let number = u32::from(register).wrapping_add(add);
    u16::try_from(number)
        .ok()
        .filter(|number| *number < step.wave.vector_count)
        .ok_or_else(|| StepFault::unknown(op, "M0 leads to a register that the wave does not have"))
}

fn move_register(step: &mut ExecContext<'_>, target: u16, source: &SourceOperand) {
    for lane in active_lanes(step.wave.exec_mask()) {
        let value = source_value(step.wave, source, lane);
        step.wave.set_lane(target, lane, value);
    }
}

/// `v_movrels`: the source is relative to M0.
pub(crate) fn move_relative_source(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let m0 = step.wave.scalars[usize::from(M0)];
    let register = relative_register(step, op, register_of(op.sources[0], op)?, m0)?;
    let target = target_of(op)?;
    move_register(step, target, &SourceOperand::Vector { register, high: false });
    Ok(StepFlow::Next)
}

/// `v_movreld`: the destination is relative to M0.
pub(crate) fn move_relative_target(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let m0 = step.wave.scalars[usize::from(M0)];
    let target = relative_register(step, op, target_of(op)?, m0)?;
    move_register(step, target, &op.sources[0]);
    Ok(StepFlow::Next)
}

/// `v_movrelsd_2`: both are, by ten bits of M0 each.
pub(crate) fn move_relative_both(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let m0 = step.wave.scalars[usize::from(M0)];
    let register = relative_register(step, op, register_of(op.sources[0], op)?, m0 & 0x3ff)?;
    let target = relative_register(step, op, target_of(op)?, m0 >> 16 & 0x3ff)?;
    move_register(step, target, &SourceOperand::Vector { register, high: false });
    Ok(StepFlow::Next)
}

/// `v_mov_b32` while registers are indexed: M0 has the index in its lowest byte; its bits 12 and 15 say whether source
/// and destination are indexed.
pub(crate) fn move_indexed(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let m0 = step.wave.scalars[usize::from(M0)];
    let target = relative_register(step, op, target_of(op)?, relative_register_index(15, m0))?;
    let source = match op.sources[0] {
        SourceOperand::Vector { register, high } => SourceOperand::Vector {
            register: relative_register(step, op, register, relative_register_index(12, m0))?,
            high,
        },
        other => other,
    };
    move_register(step, target, &source);
    Ok(StepFlow::Next)
}

fn relative_register_index(bit: u32, m0: u32) -> u32 {
    if m0 >> bit & 1 != 0 { m0 & 255 } else { 0 }
}
