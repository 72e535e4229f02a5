//! Vector instructions whose sources' formats depend on modifiers.

use super::vector::{apply_output_modifiers, gather_sources, store_result};
use super::{ExecContext, StepFault, StepFlow, StepResult, lanes_of};
use crate::micro::{MicroOp, Modifiers};
use crate::wave::WaveState;
use hotswap_semantics::{
    LANES, LaneType, WideLanes, bf16_to_f32, combine_bits, f16_to_f32, integer_dot, round_to_bf16, round_to_f16,
    unfused_multiply_add,
};

/// The sources of a mixed multiply-add as 32-bit floats: 16 bits where `select_high` says so.
fn mixed_sources(wave: &WaveState, op: &MicroOp, half: usize, brain: bool) -> [WideLanes; 3] {
    let modifiers = op.modifiers;
    std::array::from_fn(|number| {
        let bit = 1 << number;
        let mut space = [0; LANES];
        let lanes = lanes_of(wave, &op.sources[number], half, &mut space);
        lanes.map(|value| {
            let part = (if modifiers.select & bit != 0 { value >> 16 } else { value }) as u16;
            let widened = if brain { bf16_to_f32(part) } else { f16_to_f32(part) };
            let mut bits = if modifiers.select_high & bit != 0 { widened.to_bits() } else { value };
            if modifiers.absolute & bit != 0 {
                bits &= 0x7fff_ffff;
            }
            if modifiers.negative & bit != 0 {
                bits ^= 0x8000_0000;
            }
            bits.into()
        })
    })
}

/// Multiply-adds of gfx900 round the product too.
fn is_unfused(op: &MicroOp) -> bool {
    op.inst.mnemonic().starts_with("v_mad_")
}

fn mixed_fma(step: &mut ExecContext<'_>, op: &MicroOp, brain: bool, result: LaneType) -> StepResult {
    if op.extra.is_some() {
        return Err(StepFault::unknown(op, "lanes of others"));
    }
    let wave = &mut *step.wave;
    for half in 0..wave.halves {
        let [a, b, c] = mixed_sources(wave, op, half, brain).map(|lanes| lanes.map(|bits| f32::from_bits(bits as u32)));
        let is_unfused = is_unfused(op);
        let mut out: WideLanes = std::array::from_fn(|lane| {
            let sum = match is_unfused {
                true => f32::from_bits(unfused_multiply_add(
                    a[lane].to_bits(),
                    b[lane].to_bits(),
                    c[lane].to_bits(),
                    wave.float_mode,
                )),
                false => a[lane].mul_add(b[lane], c[lane]),
            };
            match result {
                LaneType::F32 => sum.to_bits().into(),
                LaneType::Bf16 => round_to_bf16(sum.into(), wave.float_mode.rounding_f16_f64()).into(),
                _ => round_to_f16(sum.into(), wave.float_mode.rounding_f16_f64()).into(),
            }
        });
        let plain =
            MicroOp { modifiers: Modifiers { clamp: op.modifiers.clamp, ..Modifiers::default() }, ..op.clone() };
        apply_output_modifiers(wave, &plain, &mut out, result);
        let mask = wave.exec_half(half);
        store_result(wave, op, &out, result, mask, half);
    }
    Ok(StepFlow::Next)
}

pub(crate) fn mixed_f32(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    mixed_fma(step, op, false, LaneType::F32)
}

pub(crate) fn mixed_f16(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    mixed_fma(step, op, false, LaneType::F16)
}

pub(crate) fn mixed_f32_bf16(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    mixed_fma(step, op, true, LaneType::F32)
}

pub(crate) fn mixed_bf16(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    mixed_fma(step, op, true, LaneType::Bf16)
}

/// Products of integers whose signs the modifiers say.
fn integer_products(step: &mut ExecContext<'_>, op: &MicroOp, bits: u32) -> StepResult {
    let signed = [op.modifiers.negative & 1 != 0, op.modifiers.negative & 2 != 0];
    let clamp = op.modifiers.clamp;
    let wave = &mut *step.wave;
    for half in 0..wave.halves {
        let gathered = gather_sources(wave, op, [LaneType::B32; 3], half);
        let [a, b, c] = &gathered.sources;
        let out = std::array::from_fn(|lane| {
            let sum = integer_dot(a[lane] as u32, b[lane] as u32, c[lane] as u32, bits, signed);
            let any = signed[0] || signed[1];
            match (clamp, any) {
                (true, true) => u64::from(sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32),
                (true, false) => u64::from(sum.clamp(0, u32::MAX.into()) as u32),
                _ => u64::from(sum as u32),
            }
        });
        store_result(wave, op, &out, LaneType::B32, gathered.mask, half);
    }
    Ok(StepFlow::Next)
}

pub(crate) fn bytes_product(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    integer_products(step, op, 8)
}

pub(crate) fn nibbles_product(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    integer_products(step, op, 4)
}

/// Three sources combined by a truth table.
fn combine_lanes(step: &mut ExecContext<'_>, op: &MicroOp, kind: LaneType) -> StepResult {
    let table = op.immediate as u32;
    let wave = &mut *step.wave;
    for half in 0..wave.halves {
        let gathered = gather_sources(wave, op, [kind; 3], half);
        let [a, b, c] = &gathered.sources;
        let out =
            std::array::from_fn(|lane| combine_bits(a[lane] as u32, b[lane] as u32, c[lane] as u32, table).into());
        store_result(wave, op, &out, kind, gathered.mask, half);
    }
    Ok(StepFlow::Next)
}

pub(crate) fn combine_words(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    combine_lanes(step, op, LaneType::B32)
}

pub(crate) fn combine_halves(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    combine_lanes(step, op, LaneType::B16)
}
