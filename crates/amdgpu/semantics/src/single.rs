//! 32-bit floats.

use crate::float::{NAN32, nan_of32, power_of_two, quiet_nan32, round_to_f32};
use crate::lanes::LaneType::{B32, F32};
use crate::lanes::{LANES, LaneFunction, Lanes, NarrowFunction, VectorRow, narrow};
use crate::mode::FloatMode;
use crate::on_long_vectors;
use crate::rounding::{add_odd, fma_odd};
use crate::source::MeaningSource::Llvm;

#[inline]
fn float(bits: u32) -> f32 {
    f32::from_bits(bits)
}

/// A function on lanes of an operation that rounds once: `fast` in the usual mode, `exact` (to odd, in 64 bits) in others.
macro_rules! rounded_function {
    (|$a:ident, $b:ident, $c:ident| $fast:expr, $exact:expr) => {
        |out, sources, mode| {
            #[inline(always)]
            fn fast(out: &mut Lanes, sources: &[&Lanes; 3]) {
                let mut invalid = false;
                for lane in 0..LANES {
                    let ($a, $b, $c) = (float(sources[0][lane]), float(sources[1][lane]), float(sources[2][lane]));
                    let _ = $c;
                    let result: f32 = $fast;
                    invalid |= result.is_nan();
                    out[lane] = result.to_bits();
                }
                if invalid {
                    settle_nans(out, sources);
                }
            }
            if mode.is_plain32() {
                return on_long_vectors!(fast(out: &mut Lanes, sources: &[&Lanes; 3]));
            }
            for lane in 0..LANES {
                let source = |number: usize| f64::from(mode.flush_source32(float(sources[number][lane])));
                let ($a, $b, $c) = (source(0), source(1), source(2));
                let _ = $c;
                out[lane] = mode.flush_result32(round_to_f32($exact, mode.rounding_f32())).to_bits();
            }
            settle_nans(out, sources);
        }
    };
}

macro_rules! rounded {
    ($($closure:tt)*) => {
        LaneFunction::Narrow(rounded_function!($($closure)*))
    };
}

/// Which NaN a result is does not depend on the processor that computes it.
#[inline(always)]
fn settle_nans(out: &mut Lanes, sources: &[&Lanes; 3]) {
    for lane in 0..LANES {
        let nan = nan_of32([sources[0][lane], sources[1][lane], sources[2][lane]]);
        out[lane] = if float(out[lane]).is_nan() { nan } else { out[lane] };
    }
}

/// A fused multiply-add on lanes; on processors with the instruction, by that.
pub(crate) const FUSED: NarrowFunction = rounded_function!(|a, b, c| a.mul_add(b, c), fma_odd(a, b, c));

/// The smaller number; a NaN only if both are, and -0 is below 0.
#[inline]
pub(crate) fn minimum_number(a: u32, b: u32, mode: FloatMode) -> u32 {
    number_of(a, b, mode, |x, y| x < y || x == y && x.is_sign_negative())
}

#[inline]
pub(crate) fn maximum_number(a: u32, b: u32, mode: FloatMode) -> u32 {
    number_of(a, b, mode, |x, y| x > y || x == y && x.is_sign_positive())
}

#[inline]
fn number_of(a: u32, b: u32, mode: FloatMode, first: fn(f32, f32) -> bool) -> u32 {
    let (x, y) = (mode.flush_source32(float(a)), mode.flush_source32(float(b)));
    let chosen = match (x.is_nan(), y.is_nan()) {
        (true, true) => return quiet_single_nan(a, mode.ieee),
        (true, false) => y,
        (false, true) => x,
        _ if first(x, y) => x,
        _ => y,
    };
    mode.flush_result32(chosen).to_bits()
}

fn quiet_single_nan(bits: u32, mode_ieee: bool) -> u32 {
    if mode_ieee { quiet_nan32(bits) } else { bits }
}

/// The smaller or larger one; a NaN if one is.
#[inline]
fn propagate_nan(a: u32, b: u32, mode: FloatMode, choose: fn(u32, u32, FloatMode) -> u32) -> u32 {
    if float(a).is_nan() || float(b).is_nan() { nan_of32([a, b, 0]) } else { choose(a, b, mode) }
}

fn ieee_minimum(a: u32, b: u32, mode: FloatMode) -> u32 {
    propagate_nan(a, b, mode, minimum_number)
}

fn ieee_maximum(a: u32, b: u32, mode: FloatMode) -> u32 {
    propagate_nan(a, b, mode, maximum_number)
}

fn median_of_three(a: u32, b: u32, c: u32, mode: FloatMode) -> u32 {
    if [a, b, c].iter().any(|bits| float(*bits).is_nan()) {
        return minimum_of_three(a, b, &mode, c);
    }
    let upper = maximum_number(a, b, mode);
    minimum_number(upper, maximum_number(minimum_number(a, b, mode), c, mode), mode)
}

fn minimum_of_three(a: u32, b: u32, mode: &FloatMode, c: u32) -> u32 {
    minimum_number(minimum_number(a, b, *mode), c, *mode)
}

/// A function that keeps the format: rounding to an integer.
#[inline]
fn to_integral(a: u32, mode: FloatMode, function: fn(f32) -> f32) -> u32 {
    let x = mode.flush_source32(float(a));
    if x.is_nan() { quiet_nan32(a) } else { function(x).to_bits() }
}

fn fractional_part(a: u32, mode: FloatMode) -> u32 {
    let x = mode.flush_source32(float(a));
    if x.is_nan() {
        return quiet_nan32(a);
    }
    if x.is_infinite() {
        return NAN32;
    }
    (x - x.floor()).min(float(0x3f7f_ffff)).to_bits()
}

/// The exponent of a finite number other than 0 whose mantissa is in [0.5, 1).
fn exponent_of(x: f32) -> i32 {
    let bits = f64::from(x).to_bits();
    (bits >> 52 & 0x7ff) as i32 - 1022
}

fn frexp_mantissa(a: u32, mode: FloatMode) -> u32 {
    let x = mode.flush_source32(float(a));
    if x.is_nan() {
        return quiet_nan32(a);
    }
    if x.is_infinite() || x == 0.0 {
        return x.to_bits();
    }
    scale_by_power(x, -exponent_of(x), FloatMode::PLAIN)
}

fn frexp_exponent(a: u32, mode: FloatMode) -> u32 {
    let x = mode.flush_source32(float(a));
    if x.is_nan() || x.is_infinite() || x == 0.0 { 0 } else { exponent_of(x) as u32 }
}

/// `x * 2^power`, rounded once.
pub(crate) fn scale_by_power(x: f32, power: i32, mode: FloatMode) -> u32 {
    let exact = f64::from(mode.flush_source32(x)) * power_of_two(power.clamp(-300, 300));
    mode.flush_result32(round_to_f32(exact, mode.rounding_f32())).to_bits()
}

fn ldexp(a: u32, power: i32, mode: FloatMode) -> u32 {
    if float(a).is_nan() { quiet_nan32(a) } else { scale_by_power(float(a), power, mode) }
}

/// A product in which 0 times anything is 0.
fn legacy_product(a: u32, b: u32, mode: FloatMode) -> u32 {
    let (x, y) = (mode.flush_source32(float(a)), mode.flush_source32(float(b)));
    if x == 0.0 || y == 0.0 {
        return 0;
    }
    finish_result(f64::from(x) * f64::from(y), [a, b, 0], mode)
}

fn legacy_fused(a: u32, b: u32, c: u32, mode: FloatMode) -> u32 {
    let [x, y, z] = [a, b, c].map(|bits| f64::from(mode.flush_source32(float(bits))));
    let exact = if x == 0.0 || y == 0.0 { add_odd(0.0, z) } else { fma_odd(x, y, z) };
    finish_result(exact, [a, b, c], mode)
}

/// The result of an operation whose exact value, rounded to odd, is `exact`.
fn finish_result(exact: f64, sources: [u32; 3], mode: FloatMode) -> u32 {
    if exact.is_nan() {
        return nan_of32(sources);
    }
    mode.flush_result32(round_to_f32(exact, mode.rounding_f32())).to_bits()
}

/// Product and sum with a rounding after each, without denormals.
pub fn unfused_multiply_add(a: u32, b: u32, c: u32, mode: FloatMode) -> u32 {
    let flushed = FloatMode { bits: mode.bits & !0x30, ..mode };
    let product = {
        let [x, y] = [a, b].map(|bits| f64::from(flushed.flush_source32(float(bits))));
        finish_result(x * y, [a, b, 0], flushed)
    };
    let [x, y] = [product, c].map(|bits| f64::from(flushed.flush_source32(float(bits))));
    finish_result(add_odd(x, y), [product, c, 0], flushed)
}

macro_rules! row {
    ([$($name:literal),+], $function:expr, $evidence:expr) => {
        VectorRow::new(&[$($name),+], [F32; 3], F32, $function, $evidence)
    };
}

#[rustfmt::skip]
pub(crate) const ROWS: &[VectorRow] = &[
    row!(["v_add_f32"], rounded!(|a, b, c| a + b, add_odd(a, b)), Llvm("fadd")),
    row!(["v_sub_f32"], rounded!(|a, b, c| a - b, add_odd(a, -b)), Llvm("fsub")),
    row!(["v_subrev_f32"], rounded!(|a, b, c| b - a, add_odd(b, -a)), Llvm("fsub")),
    row!(["v_mul_f32"], rounded!(|a, b, c| a * b, a * b), Llvm("fmul")),
    row!(["v_fma_f32", "v_fmac_f32", "v_fmaak_f32", "v_fmamk_f32"], LaneFunction::Narrow(FUSED), Llvm("fma")),
    row!(["v_mad_f32", "v_mac_f32", "v_madak_f32", "v_madmk_f32"], narrow!(|a, b, c, m| unfused_multiply_add(a, b, c, m)), Llvm("fmad")),
    row!(["v_mul_legacy_f32", "v_mul_dx9_zero_f32"], narrow!(|a, b, _, m| legacy_product(a, b, m)), Llvm("AMDGPUfmul_legacy")),
    row!(["v_fma_legacy_f32", "v_fma_dx9_zero_f32", "v_fmac_legacy_f32", "v_fmac_dx9_zero_f32"],
        narrow!(|a, b, c, m| legacy_fused(a, b, c, m)), Llvm("int_amdgcn_fma_legacy")),
    row!(["v_min_f32", "v_min_num_f32"], narrow!(|a, b, _, m| minimum_number(a, b, m)), Llvm("fminnum")),
    row!(["v_max_f32", "v_max_num_f32"], narrow!(|a, b, _, m| maximum_number(a, b, m)), Llvm("fmaxnum")),
    row!(["v_min3_f32", "v_min3_num_f32"], narrow!(|a, b, c, m| minimum_number(minimum_number(a, b, m), c, m)), Llvm("AMDGPUfmin3")),
    row!(["v_max3_f32", "v_max3_num_f32"], narrow!(|a, b, c, m| maximum_number(maximum_number(a, b, m), c, m)), Llvm("AMDGPUfmax3")),
    row!(["v_maxmin_f32", "v_maxmin_num_f32"], narrow!(|a, b, c, m| minimum_number(maximum_number(a, b, m), c, m)), Llvm("fminnum (fmaxnum)")),
    row!(["v_minmax_f32", "v_minmax_num_f32"], narrow!(|a, b, c, m| maximum_number(minimum_number(a, b, m), c, m)), Llvm("fmaxnum (fminnum)")),
    row!(["v_med3_f32", "v_med3_num_f32"], narrow!(|a, b, c, m| median_of_three(a, b, c, m)), Llvm("AMDGPUfmed3")),
    row!(["v_minimum_f32"], narrow!(|a, b, _, m| ieee_minimum(a, b, m)), Llvm("fminimum")),
    row!(["v_maximum_f32"], narrow!(|a, b, _, m| ieee_maximum(a, b, m)), Llvm("fmaximum")),
    row!(["v_minimum3_f32"], narrow!(|a, b, c, m| ieee_minimum(ieee_minimum(a, b, m), c, m)), Llvm("AMDGPUfminimum3")),
    row!(["v_maximum3_f32"], narrow!(|a, b, c, m| ieee_maximum(ieee_maximum(a, b, m), c, m)), Llvm("AMDGPUfmaximum3")),
    row!(["v_maximumminimum_f32"], narrow!(|a, b, c, m| ieee_minimum(ieee_maximum(a, b, m), c, m)), Llvm("fminimum (fmaximum)")),
    row!(["v_minimummaximum_f32"], narrow!(|a, b, c, m| ieee_maximum(ieee_minimum(a, b, m), c, m)), Llvm("fmaximum (fminimum)")),
    row!(["v_floor_f32"], narrow!(|a, _, _, m| to_integral(a, m, f32::floor)), Llvm("ffloor")),
    row!(["v_ceil_f32"], narrow!(|a, _, _, m| to_integral(a, m, f32::ceil)), Llvm("fceil")),
    row!(["v_trunc_f32"], narrow!(|a, _, _, m| to_integral(a, m, f32::trunc)), Llvm("ftrunc")),
    row!(["v_rndne_f32"], narrow!(|a, _, _, m| to_integral(a, m, f32::round_ties_even)), Llvm("frint")),
    row!(["v_fract_f32"], narrow!(|a, _, _, m| fractional_part(a, m)), Llvm("AMDGPUfract")),
    row!(["v_frexp_mant_f32"], narrow!(|a, _, _, m| frexp_mantissa(a, m)), Llvm("int_amdgcn_frexp_mant")),
    VectorRow::new(&["v_frexp_exp_i32_f32"], [F32; 3], B32, narrow!(|a, _, _, m| frexp_exponent(a, m)), Llvm("int_amdgcn_frexp_exp")),
    VectorRow::new(&["v_ldexp_f32"], [F32, B32, B32], F32, narrow!(|a, b, _, m| ldexp(a, b as i32, m)), Llvm("fldexp")),
];
