//! Conversions of 8-bit floats.

use super::vector::{gather_sources, store_result};
use super::{ExecContext, StepFault, StepFlow, StepResult, write_lanes};
use crate::micro::{DestOperand, MicroOp, MicroOpBody};
use hotswap_semantics::{Float8, LaneType, WideLanes, f16_to_f32, round_to_f16};
use std::array::from_fn;

fn format_of(op: &MicroOp) -> Result<Float8, Box<StepFault>> {
    match op.body {
        MicroOpBody::Float8(format) => Ok(format),
        _ => Err(StepFault::unknown(op, "")),
    }
}

/// A 16-bit float with this value; those of 8 bits are exact there.
fn f16_bits(value: f32) -> u64 {
    round_to_f16(value.into(), hotswap_semantics::Rounding::NearestEven).into()
}

/// One number to 32 or 16 bits. The immediate is the number of the byte.
pub(crate) fn widen_one(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let format = format_of(op)?;
    let wave = &mut *step.wave;
    let result = if op.inst.mnemonic().starts_with("v_cvt_f16") { LaneType::F16 } else { LaneType::F32 };
    for block in 0..wave.halves {
        let gathered = gather_sources(wave, op, [LaneType::B32; 3], block);
        let out = gathered.sources[0].map(|word| {
            let value = format.decode_value((word >> (8 * op.immediate)) as u8);
            if result == LaneType::F16 { f16_bits(value) } else { value.to_bits().into() }
        });
        store_result(wave, op, &out, result, gathered.mask, block);
    }
    Ok(StepFlow::Next)
}

/// Two numbers of a half of the source.
fn two_numbers(format: Float8, op: &MicroOp, words: &WideLanes) -> [[f32; 32]; 2] {
    let shift = if op.modifiers.select & 1 != 0 { 16 } else { 0 };
    [0, 8].map(|at| from_fn(|lane| format.decode_value((words[lane] >> (shift + at)) as u8)))
}

/// Two numbers to 32 bits each.
pub(crate) fn widen_pair(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (format, DestOperand::Vector { register, .. }) = (format_of(op)?, op.target) else {
        return Err(StepFault::unknown(op, ""));
    };
    let wave = &mut *step.wave;
    for block in 0..wave.halves {
        let gathered = gather_sources(wave, op, [LaneType::B32; 3], block);
        for (number, values) in two_numbers(format, op, &gathered.sources[0]).iter().enumerate() {
            let target = wave.block_mut(register + number as u16, block);
            write_lanes(target, &values.map(f32::to_bits), gathered.mask);
        }
    }
    Ok(StepFlow::Next)
}

/// Two numbers to 16 bits each.
pub(crate) fn widen_halves(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let format = format_of(op)?;
    let wave = &mut *step.wave;
    for block in 0..wave.halves {
        let gathered = gather_sources(wave, op, [LaneType::B32; 3], block);
        let [low, high] = two_numbers(format, op, &gathered.sources[0]);
        let out = from_fn(|lane| f16_bits(low[lane]) | f16_bits(high[lane]) << 16);
        store_result(wave, op, &out, LaneType::B32, gathered.mask, block);
    }
    Ok(StepFlow::Next)
}

/// Two 32-bit numbers to half a register.
pub(crate) fn narrow_pair(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let format = format_of(op)?;
    let wave = &mut *step.wave;
    let (mode, clamp) = (wave.float_mode, wave.float_mode.clamp_overflow);
    for block in 0..wave.halves {
        let gathered = gather_sources(wave, op, [LaneType::F32; 3], block);
        let [low, high, _] = &gathered.sources;
        let out = from_fn(|lane| {
            round_single_byte(low[lane], &format, &mode, clamp)
                | round_single_byte(high[lane], &format, &mode, clamp) << 8
        });
        store_result(wave, op, &out, LaneType::B16, gathered.mask, block);
    }
    Ok(StepFlow::Next)
}

fn round_single_byte(bits: u64, format: &Float8, mode: &hotswap_semantics::FloatMode, clamp: bool) -> u64 {
    u64::from(format.round(mode.flush_source32(f32::from_bits(bits as u32)).into(), clamp))
}

/// Two 16-bit numbers to half a register.
pub(crate) fn narrow_halves(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let format = format_of(op)?;
    if op.modifiers.negative | op.modifiers.absolute != 0 {
        return Err(StepFault::unknown(op, "signs of packed numbers"));
    }
    let wave = &mut *step.wave;
    let (mode, clamp) = (wave.float_mode, wave.float_mode.clamp_overflow);
    for block in 0..wave.halves {
        let gathered = gather_sources(wave, op, [LaneType::B32; 3], block);
        let out = gathered.sources[0].map(|word| {
            round_half_byte(word, &format, &mode, clamp) | round_half_byte(word >> 16, &format, &mode, clamp) << 8
        });
        store_result(wave, op, &out, LaneType::B16, gathered.mask, block);
    }
    Ok(StepFlow::Next)
}

fn round_half_byte(bits: u64, format: &Float8, mode: &hotswap_semantics::FloatMode, clamp: bool) -> u64 {
    u64::from(format.round(f16_to_f32(mode.flush_source16(bits as u16)).into(), clamp))
}
