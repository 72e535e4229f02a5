//! Reciprocals, roots, exponentials, and the steps of a division.
//!
//! The hardware's results differ from the exact ones by up to one unit in the last place (more for sine and cosine);
//! these functions return the nearest number. Code that is compiled from portable sources does not depend on it.

use crate::double;
use crate::float::{NAN32, NAN64, nan_of32, nan_of64, power_of_two, quiet_nan32, round_to_f32};
use crate::half;
use crate::lanes::LaneType::{B32, F16, F32, F64};
use crate::lanes::{BITS, LANES, LaneFunction, Lanes, VectorRow, WideLanes, lanes_of_mask, lanes_where, narrow, wide};
use crate::mode::FloatMode;
use crate::on_long_vectors;
use crate::rounding::fma_odd;
use crate::single;
use crate::source::MeaningSource::{Document, Llvm};
use std::f64::consts::TAU;

/// A function of one number. Denormals are 0 on both sides, whatever MODE says.
#[inline(always)]
pub(crate) fn of_single(bits: u32, function: fn(f64) -> f64) -> u32 {
    const FLUSHED: FloatMode = FloatMode { bits: 0xc0, ..FloatMode::PLAIN };
    let x = f32::from_bits(bits);
    if x.is_nan() {
        return quiet_nan32(bits);
    }
    let result = function(f64::from(FLUSHED.flush_source32(x)));
    if result.is_nan() { NAN32 } else { FLUSHED.flush_result32(result as f32).to_bits() }
}

#[inline(always)]
fn of_double(bits: u64, mode: FloatMode, function: fn(f64) -> f64) -> u64 {
    let x = f64::from_bits(bits);
    let result = function(mode.flush_source64(x));
    if result.is_nan() { nan_of64([bits, 0, 0]) } else { mode.flush_result64(result).to_bits() }
}

#[inline(always)]
pub(crate) fn reciprocal(x: f64) -> f64 {
    1.0 / x
}

#[inline(always)]
pub(crate) fn reciprocal_root(x: f64) -> f64 {
    1.0 / x.sqrt()
}

pub(crate) fn sine_of_turns(x: f64) -> f64 {
    (x.fract() * TAU).sin()
}

pub(crate) fn cosine_of_turns(x: f64) -> f64 {
    (x.fract() * TAU).cos()
}

#[inline(always)]
fn biased_exponent(bits: u32) -> i32 {
    (bits >> 23 & 255) as i32
}

/// Scales a numerator or denominator `a` of `n / d`, so that the quotient can be computed without denormals and overflow.
/// The bit says that the quotient must be scaled back.
fn div_scale(a: u32, d: u32, n: u32) -> (u32, bool) {
    let [x, y, z] = [a, d, n].map(f32::from_bits);
    if z == 0.0 || y == 0.0 {
        return (NAN32, false);
    }
    let quotient = f64::from(z) / f64::from(y);
    let reciprocal_is_denormal = is_f32_denormal(1.0 / f64::from(y));
    if biased_exponent(n) - biased_exponent(d) >= 96 {
        return (if x == y { scale_up_single(x) } else { a }, true);
    }
    if y.is_subnormal() {
        return (scale_up_single(x), false);
    }
    match (reciprocal_is_denormal, is_f32_denormal(quotient)) {
        (true, true) => (if x == y { scale_up_single(x) } else { a }, true),
        (true, false) => (single::scale_by_power(x, -64, FloatMode::PLAIN), false),
        (false, true) => (if x == z { scale_up_single(x) } else { a }, true),
        _ if biased_exponent(n) <= 23 => (scale_up_single(x), false),
        _ => (a, false),
    }
}

fn scale_up_single(x: f32) -> u32 {
    single::scale_by_power(x, 64, FloatMode::PLAIN)
}

fn is_f32_denormal(value: f64) -> bool {
    value != 0.0 && value.abs() < f64::from(f32::MIN_POSITIVE)
}

#[inline(always)]
fn biased_exponent64(bits: u64) -> i32 {
    (bits >> 52 & 0x7ff) as i32
}

fn div_scale64(a: u64, d: u64, n: u64) -> (u64, bool) {
    let [x, y, z] = [a, d, n].map(f64::from_bits);
    if z == 0.0 || y == 0.0 {
        return (NAN64, false);
    }
    let reciprocal_is_denormal = (1.0 / y).is_subnormal();
    // A quotient that is rounded to 0 is below the denormals; no step scales it.
    let quotient_is_denormal = (z / y).is_subnormal();
    if biased_exponent64(n) - biased_exponent64(d) >= 768 {
        return (if x == y { scale_up_double(x) } else { a }, true);
    }
    if y.is_subnormal() {
        return (scale_up_double(x), false);
    }
    match (reciprocal_is_denormal, quotient_is_denormal) {
        (true, true) => (if x == y { scale_up_double(x) } else { a }, true),
        (true, false) => (double::scale_by_power(x, -128).to_bits(), false),
        (false, true) => (if x == z { scale_up_double(x) } else { a }, true),
        _ if biased_exponent64(n) <= 53 => (scale_up_double(x), false),
        _ => (a, false),
    }
}

fn scale_up_double(x: f64) -> u64 {
    double::scale_by_power(x, 128).to_bits()
}

/// The first step of a division: most numbers are not scaled.
fn div_scale_lanes(out: &mut Lanes, sources: &[&Lanes; 3], _: u32, _: FloatMode) -> u32 {
    #[inline(always)]
    fn all(out: &mut Lanes, sources: &[&Lanes; 3]) -> u32 {
        let [a, d, n] = *sources;
        // Others have a reciprocal and a quotient that are normal numbers, and all bits of the numerator count.
        let special = lanes_where(|lane| {
            let (d, n) = (biased_exponent(d[lane]), biased_exponent(n[lane]));
            !(1..=252).contains(&d) | !(24..=254).contains(&n) | !(-124..96).contains(&(n - d))
        });
        *out = *a;
        lanes_of_mask(special).fold(0, |back, lane| {
            let (value, is_back) = div_scale(a[lane], d[lane], n[lane]);
            out[lane] = value;
            back | if is_back { BITS[lane] } else { 0 }
        })
    }
    on_long_vectors!(all(out: &mut Lanes, sources: &[&Lanes; 3]) -> u32)
}

fn div_scale64_lanes(out: &mut WideLanes, sources: &[&WideLanes; 3], _: u32, _: FloatMode) -> u32 {
    #[inline(always)]
    fn all(out: &mut WideLanes, sources: &[&WideLanes; 3]) -> u32 {
        let [a, d, n] = *sources;
        let special = lanes_where(|lane| {
            let (d, n) = (biased_exponent64(d[lane]), biased_exponent64(n[lane]));
            !(1..=2044).contains(&d) | !(54..=2046).contains(&n) | !(-1020..768).contains(&(n - d))
        });
        *out = *a;
        lanes_of_mask(special).fold(0, |back, lane| {
            let (value, is_back) = div_scale64(a[lane], d[lane], n[lane]);
            out[lane] = value;
            back | if is_back { BITS[lane] } else { 0 }
        })
    }
    on_long_vectors!(all(out: &mut WideLanes, sources: &[&WideLanes; 3]) -> u32)
}

/// The last step of a quotient: a multiply-add where nothing is scaled back.
fn div_fmas_lanes(out: &mut Lanes, sources: &[&Lanes; 3], back: u32, mode: FloatMode) -> u32 {
    single::FUSED(out, sources, mode);
    let [a, b, c] = *sources;
    lanes_of_mask(back).for_each(|lane| out[lane] = div_fmas(a[lane], b[lane], c[lane], mode));
    0
}

fn div_fmas64_lanes(out: &mut WideLanes, sources: &[&WideLanes; 3], back: u32, mode: FloatMode) -> u32 {
    double::FUSED(out, sources, mode);
    let [a, b, c] = *sources;
    lanes_of_mask(back).for_each(|lane| out[lane] = div_fmas64(a[lane], b[lane], c[lane], mode));
    0
}

/// Corrects quotients: most get their sign only.
fn div_fixup_lanes(out: &mut Lanes, sources: &[&Lanes; 3], _: FloatMode) {
    #[inline(always)]
    fn all(out: &mut Lanes, sources: &[&Lanes; 3]) {
        let [q, d, n] = *sources;
        let special = lanes_where(|lane| {
            let (d, n) = (biased_exponent(d[lane]), biased_exponent(n[lane]));
            !(1..=254).contains(&d) | !(1..=254).contains(&n) | !(-150..=127).contains(&(n - d))
        });
        for lane in 0..LANES {
            out[lane] = (d[lane] ^ n[lane]) & 0x8000_0000 | q[lane] & 0x7fff_ffff;
        }
        lanes_of_mask(special).for_each(|lane| out[lane] = div_fixup(q[lane], d[lane], n[lane]));
    }
    on_long_vectors!(all(out: &mut Lanes, sources: &[&Lanes; 3]))
}

fn div_fixup64_lanes(out: &mut WideLanes, sources: &[&WideLanes; 3], _: FloatMode) {
    #[inline(always)]
    fn all(out: &mut WideLanes, sources: &[&WideLanes; 3]) {
        let [q, d, n] = *sources;
        let special = lanes_where(|lane| {
            let (d, n) = (biased_exponent64(d[lane]), biased_exponent64(n[lane]));
            !(1..=2046).contains(&d) | !(1..=2046).contains(&n) | !(-1075..=1023).contains(&(n - d))
        });
        for lane in 0..LANES {
            out[lane] = (d[lane] ^ n[lane]) & 1 << 63 | q[lane] & !(1 << 63);
        }
        lanes_of_mask(special).for_each(|lane| out[lane] = div_fixup64(q[lane], d[lane], n[lane]));
    }
    on_long_vectors!(all(out: &mut WideLanes, sources: &[&WideLanes; 3]))
}

/// The last step of a quotient, scaled back as [`div_scale`] said.
fn div_fmas(a: u32, b: u32, c: u32, mode: FloatMode) -> u32 {
    let [x, y, z] = [a, b, c].map(|bits| f64::from(mode.flush_source32(f32::from_bits(bits))));
    let exact = fma_odd(x, y, z);
    if exact.is_nan() {
        return nan_of32([a, b, c]);
    }
    let power = if biased_exponent(c) > 127 { 64 } else { -64 };
    mode.flush_result32(round_to_f32(exact * power_of_two(power), mode.rounding_f32())).to_bits()
}

fn div_fmas64(a: u64, b: u64, c: u64, mode: FloatMode) -> u64 {
    let [x, y, z] = [a, b, c].map(|bits| mode.flush_source64(f64::from_bits(bits)));
    let result = x.mul_add(y, z);
    if result.is_nan() {
        return nan_of64([a, b, c]);
    }
    let power = if biased_exponent64(c) > 1023 { 128 } else { -128 };
    mode.flush_result64(double::scale_by_power(result, power)).to_bits()
}

/// Corrects a quotient where a source is special.
fn div_fixup(q: u32, d: u32, n: u32) -> u32 {
    let sign = (d ^ n) & 0x8000_0000;
    let [x, y] = [n, d].map(f32::from_bits);
    if x.is_nan() || y.is_nan() {
        return quiet_nan32(if x.is_nan() { n } else { d });
    }
    match () {
        () if x == 0.0 && y == 0.0 || x.is_infinite() && y.is_infinite() => 0xffc0_0000,
        () if y == 0.0 || x.is_infinite() => sign | 0x7f80_0000,
        () if x == 0.0 || y.is_infinite() => sign,
        () if biased_exponent(n) - biased_exponent(d) < -150 => sign,
        () if f32::from_bits(q).is_nan() && biased_exponent(n) - biased_exponent(d) > 127 => sign | 0x7f80_0000,
        () => sign | q & 0x7fff_ffff,
    }
}

fn div_fixup64(q: u64, d: u64, n: u64) -> u64 {
    let sign = (d ^ n) & 1 << 63;
    let [x, y] = [n, d].map(f64::from_bits);
    let infinity = f64::INFINITY.to_bits();
    if x.is_nan() || y.is_nan() {
        return (if x.is_nan() { n } else { d }) | 1 << 51;
    }
    match () {
        () if x == 0.0 && y == 0.0 || x.is_infinite() && y.is_infinite() => 0xfff8_0000_0000_0000,
        () if y == 0.0 || x.is_infinite() => sign | infinity,
        () if x == 0.0 || y.is_infinite() => sign,
        () if biased_exponent64(n) - biased_exponent64(d) < -1075 => sign,
        () if f64::from_bits(q).is_nan() && biased_exponent64(n) - biased_exponent64(d) > 1023 => sign | infinity,
        () => sign | q & !(1 << 63),
    }
}

macro_rules! of32 {
    ([$($name:literal),+], $function:expr, $evidence:expr) => {
        VectorRow::new(&[$($name),+], [F32; 3], F32, narrow!(|a, _, _, _| of_single(a, $function)), $evidence)
    };
}

macro_rules! of16 {
    ([$($name:literal),+], $function:expr, $evidence:expr) => {
        VectorRow::new(&[$($name),+], [F16; 3], F16,
            narrow!(|a, _, _, m| u32::from(half::apply_unary(a as u16, m, $function))), $evidence)
    };
}

#[rustfmt::skip]
pub(crate) const ROWS: &[VectorRow] = &[
    of32!(["v_rcp_f32", "v_rcp_iflag_f32", "v_s_rcp_f32"], reciprocal, Llvm("AMDGPUrcp")),
    of32!(["v_rsq_f32", "v_s_rsq_f32"], reciprocal_root, Llvm("AMDGPUrsq")),
    of32!(["v_sqrt_f32", "v_s_sqrt_f32"], f64::sqrt, Llvm("int_amdgcn_sqrt")),
    of32!(["v_exp_f32", "v_s_exp_f32"], f64::exp2, Llvm("AMDGPUexp")),
    of32!(["v_log_f32", "v_s_log_f32"], f64::log2, Llvm("AMDGPUlog")),
    of32!(["v_sin_f32"], sine_of_turns, Llvm("AMDGPUsin")),
    of32!(["v_cos_f32"], cosine_of_turns, Llvm("AMDGPUcos")),
    of32!(["v_tanh_f32"], f64::tanh, Llvm("int_amdgcn_tanh")),
    of16!(["v_rcp_f16", "v_s_rcp_f16"], reciprocal, Llvm("AMDGPUrcp")),
    of16!(["v_rsq_f16", "v_s_rsq_f16"], reciprocal_root, Llvm("AMDGPUrsq")),
    of16!(["v_sqrt_f16", "v_s_sqrt_f16"], f64::sqrt, Llvm("int_amdgcn_sqrt")),
    of16!(["v_exp_f16", "v_s_exp_f16"], f64::exp2, Llvm("AMDGPUexp")),
    of16!(["v_log_f16", "v_s_log_f16"], f64::log2, Llvm("AMDGPUlog")),
    of16!(["v_sin_f16"], sine_of_turns, Llvm("AMDGPUsin")),
    of16!(["v_cos_f16"], cosine_of_turns, Llvm("AMDGPUcos")),
    of16!(["v_tanh_f16"], f64::tanh, Llvm("int_amdgcn_tanh")),
    VectorRow::new(&["v_rcp_f64"], [F64; 3], F64, wide!(|a, _, _, m| of_double(a, m, reciprocal)), Llvm("AMDGPUrcp")),
    VectorRow::new(&["v_rsq_f64"], [F64; 3], F64, wide!(|a, _, _, m| of_double(a, m, reciprocal_root)), Llvm("AMDGPUrsq")),
    VectorRow::new(&["v_sqrt_f64"], [F64; 3], F64, wide!(|a, _, _, m| of_double(a, m, f64::sqrt)), Llvm("int_amdgcn_sqrt")),
    VectorRow::new(&["v_div_scale_f32"], [F32; 3], F32, LaneFunction::Carry(div_scale_lanes), Document("first step of a division")),
    VectorRow::new(&["v_div_scale_f64"], [F64; 3], F64, LaneFunction::CarryWide(div_scale64_lanes), Document("first step of a division")),
    VectorRow::new(&["v_div_fmas_f32"], [F32; 3], F32, LaneFunction::Carry(div_fmas_lanes), Document("last multiply-add of a division")),
    VectorRow::new(&["v_div_fmas_f64"], [F64; 3], F64, LaneFunction::CarryWide(div_fmas64_lanes), Document("last multiply-add of a division")),
    VectorRow::new(&["v_div_fixup_f32"], [F32; 3], F32, LaneFunction::Narrow(div_fixup_lanes), Document("special cases of a division")),
    VectorRow::new(&["v_div_fixup_f64"], [F64; 3], F64, LaneFunction::Wide(div_fixup64_lanes), Document("special cases of a division")),
    VectorRow::new(&["v_trig_preop_f64"], [F64, B32, B32], F64, wide!(|a, b, _, _| two_over_pi(a, b)), Document("bits of 2/pi for a range reduction")),
];

/// 1216 bits of 2/pi after the point, the first in the uppermost bit.
const TWO_OVER_PI: [u64; 19] = [
    0xA2F9_836E_4E44_1529,
    0xFC27_57D1_F534_DDC0,
    0xDB62_9599_3C43_9041,
    0xFE51_63AB_DEBB_C561,
    0xB724_6E3A_424D_D2E0,
    0x0649_2EEA_09D1_921C,
    0xFE1D_EB1C_B129_A73E,
    0xE882_35F5_2EBB_4484,
    0xE99C_7026_B45F_7E41,
    0x3991_D639_8353_39F4,
    0x9C84_5F8B_BDF9_283B,
    0x1FF8_97FF_DE05_980F,
    0xEF2F_118B_5A0A_6D1F,
    0x6D36_7ECF_27CB_09B7,
    0x4F46_3F66_9E5F_EA2D,
    0x7527_BAC7_EBE5_F17B,
    0x3D07_39F7_8A52_92EA,
    0x6BFB_5FB1_1F8D_5D08,
    0x5603_3046_FC7B_6BAB,
];

/// 53 bits of 2/pi at the position that a number's exponent and the part's number select.
fn two_over_pi(a: u64, part: u64) -> u64 {
    let exponent = biased_exponent64(a);
    let start = (part as i32 & 31) * 53 + (exponent - 1077).max(0);
    let mantissa = (start..start + 53).fold(0, |value, number| value << 1 | two_over_pi_bit(number));
    let base = if exponent >= 1968 { 128 } else { 0 };
    double::scale_by_power(mantissa as f64, base - 53 - start).to_bits()
}

fn two_over_pi_bit(number: i32) -> u64 {
    let word = TWO_OVER_PI.get(number as usize / 64).copied().unwrap_or(0);
    word >> (63 - number % 64) & 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with 32 pairs of a denominator and a numerator at a time: all pairs of these exponents.
    fn pairs(exponents: &[u64], mantissa_bits: u32, check: &mut dyn FnMut(&WideLanes, &WideLanes)) {
        let top = 1 << (mantissa_bits - 1);
        let mantissas = [0, 1, top, 2 * top - 1];
        let number = |exponent: u64, choice: usize| {
            exponent << mantissa_bits
                | mantissas[choice % 4]
                | ((choice / 4 % 2) as u64) << (mantissa_bits + if mantissa_bits == 23 { 8 } else { 11 })
        };
        let (mut all, mut choice) = (Vec::new(), 0);
        for d in exponents {
            for n in exponents {
                for _ in 0..4 {
                    choice += 1;
                    all.push((number(*d, choice), number(*n, choice / 3)));
                }
            }
        }
        for block in all.chunks_exact(LANES) {
            check(&std::array::from_fn(|lane| block[lane].0), &std::array::from_fn(|lane| block[lane].1));
        }
    }

    #[test]
    fn divisions_of_all_lanes_are_those_of_each() {
        let exponents: Vec<u64> = (0..256).collect();
        pairs(&exponents, 23, &mut |d, n| {
            let [d, n] = [d, n].map(|lanes| lanes.map(|bits| bits as u32));
            for (a, q) in [(&d, 0x3f80_0001), (&n, 0x7fc0_0001)] {
                let mut out = [0; LANES];
                let mut back = div_scale_lanes(&mut out, &[a, &d, &n], 0, FloatMode::PLAIN);
                for lane in 0..LANES {
                    let expected = div_scale(a[lane], d[lane], n[lane]);
                    assert_eq!(
                        (out[lane], back & 1 != 0),
                        expected,
                        "{:#x} of {:#x} / {:#x}",
                        a[lane],
                        n[lane],
                        d[lane]
                    );
                    back >>= 1;
                }
                div_fixup_lanes(&mut out, &[&[q; LANES], &d, &n], FloatMode::PLAIN);
                assert_eq!(out, std::array::from_fn(|lane| div_fixup(q, d[lane], n[lane])));
            }
        });
    }

    #[test]
    fn wide_divisions_of_all_lanes_are_those_of_each() {
        // All that are near a limit, and some between them.
        let limits = [0, 54, 767, 971, 1023, 1277, 1790, 2046];
        let exponents: Vec<u64> =
            limits.iter().flat_map(|limit: &u64| limit.saturating_sub(4)..(limit + 5).min(2048)).collect();
        pairs(&exponents, 52, &mut |d, n| {
            for (a, q) in [(d, 1.5_f64.to_bits()), (n, f64::NAN.to_bits())] {
                let mut out = [0; LANES];
                let mut back = div_scale64_lanes(&mut out, &[a, d, n], 0, FloatMode::PLAIN);
                for lane in 0..LANES {
                    let expected = div_scale64(a[lane], d[lane], n[lane]);
                    assert_eq!(
                        (out[lane], back & 1 != 0),
                        expected,
                        "{:#x} of {:#x} / {:#x}",
                        a[lane],
                        n[lane],
                        d[lane]
                    );
                    back >>= 1;
                }
                div_fixup64_lanes(&mut out, &[&[q; LANES], d, n], FloatMode::PLAIN);
                assert_eq!(out, std::array::from_fn(|lane| div_fixup64(q, d[lane], n[lane])));
            }
        });
    }
}
