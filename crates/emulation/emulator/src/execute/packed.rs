//! Operations on two numbers in one register or register pair.

use super::vector::{apply_output_modifiers, compute_lanes};
use super::{ExecContext, StepFault, StepFlow, StepResult, lanes_of, wide_of, write_lanes};
use crate::micro::{DestOperand, MicroOp, MicroOpBody, SourceOperand};
use crate::wave::WaveState;
use hotswap_semantics::{LANES, LaneType, WideLanes};

/// The same function for the lower and the upper number.
pub(crate) fn compute_pair(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (MicroOpBody::Packed { row, function }, DestOperand::Vector { register, .. }) = (op.body, op.target) else {
        return Err(StepFault::unknown(op, ""));
    };
    if op.extra.is_some() {
        return Err(StepFault::unknown(op, "packed with lanes of others"));
    }
    let wave = &mut *step.wave;
    for half in 0..wave.halves {
        let mut results = [[0; LANES]; 2];
        for (upper, result) in results.iter_mut().enumerate() {
            let sources = std::array::from_fn(|number| packed_element(wave, op, row.of, number, upper == 1, half));
            let (mut out, _) = compute_lanes(function, &sources, 0, wave);
            apply_output_modifiers(wave, op, &mut out, row.of);
            *result = out;
        }
        let mask = wave.exec_half(half);
        write_pair(wave, register, row.of, &results, mask, half);
    }
    Ok(StepFlow::Next)
}

fn write_pair(wave: &mut WaveState, register: u16, of: LaneType, results: &[WideLanes; 2], mask: u32, half: usize) {
    let [low, high] = results;
    if of.bits() == 16 {
        let out = std::array::from_fn(|lane| (low[lane] & 0xffff | high[lane] << 16) as u32);
        return write_lanes(wave.block_mut(register, half), &out, mask);
    }
    for (number, values) in results.iter().enumerate() {
        let first = register + number as u16 * (of.bits() / 32) as u16;
        write_lanes(wave.block_mut(first, half), &values.map(|value| value as u32), mask);
        if of.bits() == 64 {
            write_lanes(wave.block_mut(first + 1, half), &values.map(|value| (value >> 32) as u32), mask);
        }
    }
}

/// The number of a source that goes into the lower or the upper result.
pub(crate) fn packed_element(
    wave: &WaveState,
    op: &MicroOp,
    of: LaneType,
    number: usize,
    upper: bool,
    half: usize,
) -> WideLanes {
    let modifiers = &op.modifiers;
    let bit = 1 << number;
    let (select, negative) =
        if upper { (modifiers.select_high, modifiers.absolute) } else { (modifiers.select, modifiers.negative) };
    let mut values = selected_element(wave, &op.sources[number], of, select & bit != 0, half);
    if of.is_float() && negative & bit != 0 {
        values.iter_mut().for_each(|value| *value ^= of.sign_bit());
    }
    values
}

fn selected_element(wave: &WaveState, source: &SourceOperand, of: LaneType, second: bool, half: usize) -> WideLanes {
    let mut space = [0; LANES];
    match of.bits() {
        16 => {
            let lanes = lanes_of(wave, source, half, &mut space);
            let shift = if second { 16 } else { 0 };
            lanes.map(|value| u64::from(value >> shift & 0xffff))
        }
        32 => {
            let wide = wide_of(wave, source, half);
            // A constant of 32 bits is the lower number; the upper one is the same constant.
            let shift = if second && !matches!(source, SourceOperand::Constant(_)) { 32 } else { 0 };
            wide.map(|value| value >> shift & 0xffff_ffff)
        }
        _ => {
            let moved = match *source {
                SourceOperand::Vector { register, high } if second => {
                    SourceOperand::Vector { register: register + 2, high }
                }
                SourceOperand::Scalar(slot) if second => SourceOperand::Scalar(slot + 2),
                other => other,
            };
            wide_of(wave, &moved, half)
        }
    }
}

/// `v_pk_mov_b32`: a dword of the first source and one of the second.
pub(crate) fn move_pair(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let DestOperand::Vector { register, .. } = op.target else { return Err(StepFault::unknown(op, "")) };
    let wave = &mut *step.wave;
    for half in 0..wave.halves {
        let parts = [0, 1].map(|number| {
            let second = op.modifiers.select >> number & 1 != 0;
            selected_element(wave, &op.sources[number], LaneType::F32, second, half).map(|value| value as u32)
        });
        let mask = wave.exec_half(half);
        for (number, values) in parts.iter().enumerate() {
            write_lanes(wave.block_mut(register + number as u16, half), values, mask);
        }
    }
    Ok(StepFlow::Next)
}
