//! Conversions of unsigned E5M3 floats: those of FP8 with the clamp bit on gfx1250, which gfx1250-strict lacks.
//!
//! Source: AMD's public table of the differences between the steppings, in own words: the sign is dropped, 0xff is NaN, 0xfe
//! the largest number (114688), numbers below 2^-14 are multiples of 2^-17.
//!
//! Absent on purpose: data-parallel forms.

use super::operand_words::{operand_lanes, vector_operand};
use super::{ExecContext, InstHandler, StepFault, StepFlow, StepResult};
use crate::micro::MicroOp;
use hotswap_isa::{Flag, Inst, Name};
use hotswap_semantics::{BITS, LANES, Lanes};

const NAN: u32 = 0xff;
const LARGEST: u32 = 0xfe;

/// The handler of an instruction, if it is one of these.
pub(crate) fn find_handler(inst: &Inst) -> Option<InstHandler> {
    let is_clamped = inst.raw(Name::Clamp).is_some_and(|raw| raw != 0) && !inst.is(Flag::Dpp);
    match inst.mnemonic() {
        "v_cvt_pk_fp8_f32" if is_clamped => Some(pack_nearest),
        "v_cvt_sr_fp8_f32" if is_clamped => Some(pack_stochastic),
        "v_cvt_f32_fp8" if is_clamped => Some(unpack_byte),
        _ => None,
    }
}

/// A number that is too large.
fn limit_code(code: u32, clamps: bool) -> u32 {
    match code {
        0..=LARGEST => code,
        _ if clamps => LARGEST,
        _ => NAN,
    }
}

/// Rounded to the nearest, ties to even.
fn round_nearest(bits: u32, clamps: bool) -> u32 {
    let value = f64::from(f32::from_bits(bits & 0x7fff_ffff));
    if value.is_nan() {
        return NAN;
    }
    if value.is_infinite() {
        return limit_code(u32::MAX, clamps);
    }
    let exponent = ((bits >> 23 & 0xff) as i32 - 127).max(-14);
    let steps = (value / 2_f64.powi(exponent - 3)).round_ties_even() as u32;
    // Steps from 8 on are those of a normal number; 16 of them are 8 of the next exponent.
    limit_code(steps + (exponent + 14) as u32 * 8, clamps)
}

/// Noise is added below the last bit that stays.
fn round_stochastic(bits: u32, noise: u32, clamps: bool) -> u32 {
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return NAN;
    }
    let exponent = magnitude >> 23;
    if magnitude < 0x3680_0000 {
        return 0;
    }
    let mantissa = u64::from(magnitude & 0x7f_ffff | 0x80_0000);
    // Bits that go: 20 of a normal number, more below 2^-14.
    let shift = if exponent >= 113 { 20 } else { 133 - exponent };
    let noise = u64::from(noise >> (32 - shift));
    let steps = (mantissa + noise) >> shift;
    limit_code(steps as u32 + exponent.saturating_sub(113) * 8, clamps)
}

fn value_of(code: u32) -> u32 {
    let (exponent, mantissa) = (code >> 3, f64::from(code & 7));
    let value = match (code, exponent) {
        (NAN, _) => return 0x7fa3_d000,
        (_, 0) => mantissa * 2_f64.powi(-17),
        _ => (1.0 + mantissa / 8.0) * 2_f64.powi(exponent as i32 - 15),
    };
    (value as f32).to_bits()
}

fn source_lanes(step: &ExecContext<'_>, op: &MicroOp, name: Name) -> Lanes {
    operand_lanes(step, op, name).first().copied().unwrap_or([0; LANES])
}

/// Sets `bits` of the target in active lanes.
fn merge_target(step: &mut ExecContext<'_>, op: &MicroOp, bits: u32, values: &Lanes) -> StepResult {
    let Some(target) = vector_operand(step, op, Name::Vdst) else { return Err(StepFault::unknown(op, "a target")) };
    let exec = step.wave.exec_half(0);
    let block = step.wave.block_mut(target.index, 0);
    for lane in (0..LANES).filter(|lane| exec & BITS[*lane] != 0) {
        block[lane] = block[lane] & !bits | values[lane] & bits;
    }
    Ok(StepFlow::Next)
}

fn pack_nearest(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let clamps = step.wave.float_mode.clamp_overflow;
    let [low, high] = [Name::Src0, Name::Src1].map(|name| source_lanes(step, op, name));
    // Bit 14 selects the upper half of the target.
    let shift = (op.inst.words()[0] >> 14 & 1) * 16;
    merge_target(
        step,
        op,
        0xffff << shift,
        &std::array::from_fn(|one| nearest_pair_bits(one, &low, clamps, &high, shift)),
    )
}

fn nearest_pair_bits(lane: usize, low: &[u32; 32], clamps: bool, high: &[u32; 32], shift: u32) -> u32 {
    (round_nearest(low[lane], clamps) | round_nearest(high[lane], clamps) << 8) << shift
}

fn pack_stochastic(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let clamps = step.wave.float_mode.clamp_overflow;
    let [value, noise] = [Name::Src0, Name::Src1].map(|name| source_lanes(step, op, name));
    // Bits 13 and 14 are the byte of the target.
    let shift = (op.inst.words()[0] >> 13 & 3) * 8;
    merge_target(
        step,
        op,
        0xff << shift,
        &std::array::from_fn(|one| stochastic_byte_bits(one, &value, &noise, clamps, shift)),
    )
}

fn stochastic_byte_bits(lane: usize, value: &[u32; 32], noise: &[u32; 32], clamps: bool, shift: u32) -> u32 {
    round_stochastic(value[lane], noise[lane], clamps) << shift
}

fn unpack_byte(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let value = source_lanes(step, op, Name::Src0);
    // Bit 12 is the lower bit of the byte's number, bit 11 the upper one.
    let word = op.inst.words()[0];
    let shift = ((word >> 12 & 1) + (word >> 11 & 1) * 2) * 8;
    merge_target(step, op, u32::MAX, &value.map(|word| value_of(word >> shift & 0xff)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_the_nearest_to_its_value() {
        for code in 0..=LARGEST {
            let bits = value_of(code);
            assert_eq!(round_nearest(bits, false), code);
            assert_eq!(round_nearest(bits | 1 << 31, true), code);
            assert_eq!(round_stochastic(bits, 0, false), code);
        }
        assert_eq!(f32::from_bits(value_of(LARGEST)), 114_688.0);
        for (bits, plain, clamped) in
            [(0x7f80_0000, NAN, LARGEST), (0x7fc0_0000, NAN, NAN), (0x47f0_0000, NAN, LARGEST)]
        {
            assert_eq!((round_nearest(bits, false), round_nearest(bits, true)), (plain, clamped));
        }
    }

    #[test]
    fn numbers_between_two_codes_are_rounded_to_even() {
        for code in 0..LARGEST {
            let [low, high] = [code, code + 1].map(|code| f64::from(f32::from_bits(value_of(code))));
            let middle = ((low + high) / 2.0) as f32;
            assert_eq!(round_nearest(middle.to_bits(), false), code + (code & 1), "{code}");
            assert_eq!(round_nearest(middle.to_bits() + 1, false), code + 1, "{code}");
            // Noise of all ones carries from the middle, noise of 0 does not.
            let above_zero = middle.to_bits() >= 0x3680_0000;
            assert_eq!(round_stochastic(middle.to_bits(), u32::MAX, false), code + u32::from(above_zero), "{code}");
            assert_eq!(round_stochastic(middle.to_bits(), 0, false), code, "{code}");
        }
    }
}
