//! 16-bit floats.

use crate::float::{NAN16, f16_to_f32, is_nan16, nan_of16, round_to_f16};
use crate::lanes::LaneType::{B16, B32, F16, F32};
use crate::lanes::{VectorRow, narrow};
use crate::mode::FloatMode;
use crate::source::MeaningSource::Llvm;

/// The value of a source; exact.
#[inline]
fn source_value(bits: u16, mode: FloatMode) -> f64 {
    f64::from(f16_to_f32(mode.flush_source16(bits)))
}

/// A result whose exact value is `exact`.
#[inline]
pub(crate) fn finish_result(exact: f64, sources: [u16; 3], mode: FloatMode) -> u16 {
    if exact.is_nan() {
        return nan_of16(sources);
    }
    let rounded = round_to_f16(exact, mode.rounding_f16_f64());
    let overflowed = rounded & 0x7fff == 0x7c00 && exact.is_finite();
    mode.flush_result16(if overflowed && mode.clamp_overflow { rounded - 1 } else { rounded })
}

/// A product of two 16-bit floats and a third; the exact sum is a multiple of 2^-48 below 2^33.
pub(crate) fn fused_multiply_add(a: u16, b: u16, c: u16, mode: FloatMode) -> u16 {
    let [x, y, z] = [a, b, c].map(|bits| source_value(bits, mode));
    let product = x * y;
    if !product.is_finite() || !z.is_finite() {
        return finish_result(product + z, [a, b, c], mode);
    }
    finish_result(crate::rounding::add_odd(product, z), [a, b, c], mode)
}

/// Product and sum with a rounding after each, without denormals.
fn unfused_multiply_add(a: u16, b: u16, c: u16, mode: FloatMode) -> u16 {
    let flushed = FloatMode { bits: mode.bits & !0xc0, ..mode };
    add_f16(multiply_f16(a, b, flushed), c, flushed)
}

pub(crate) fn add_f16(a: u16, b: u16, mode: FloatMode) -> u16 {
    finish_result(source_value(a, mode) + source_value(b, mode), [a, b, 0], mode)
}

pub(crate) fn multiply_f16(a: u16, b: u16, mode: FloatMode) -> u16 {
    finish_result(source_value(a, mode) * source_value(b, mode), [a, b, 0], mode)
}

fn number_of(a: u16, b: u16, mode: FloatMode, first: fn(f64, f64) -> bool) -> u16 {
    match (is_nan16(a), is_nan16(b)) {
        (true, true) => quiet_half_nan(a, mode.ieee),
        (true, false) => mode.flush_result16(mode.flush_source16(b)),
        (false, true) => mode.flush_result16(mode.flush_source16(a)),
        _ if first(source_value(a, mode), source_value(b, mode)) => mode.flush_result16(mode.flush_source16(a)),
        _ => mode.flush_result16(mode.flush_source16(b)),
    }
}

fn quiet_half_nan(bits: u16, mode_ieee: bool) -> u16 {
    if mode_ieee { bits | 0x200 } else { bits }
}

pub(crate) fn minimum_number(a: u16, b: u16, mode: FloatMode) -> u16 {
    number_of(a, b, mode, |x, y| x < y || x == y && x.is_sign_negative())
}

pub(crate) fn maximum_number(a: u16, b: u16, mode: FloatMode) -> u16 {
    number_of(a, b, mode, |x, y| x > y || x == y && x.is_sign_positive())
}

pub(crate) fn ieee_minimum(a: u16, b: u16, mode: FloatMode) -> u16 {
    if is_nan16(a) || is_nan16(b) { nan_of16([a, b, 0]) } else { minimum_number(a, b, mode) }
}

pub(crate) fn ieee_maximum(a: u16, b: u16, mode: FloatMode) -> u16 {
    if is_nan16(a) || is_nan16(b) { nan_of16([a, b, 0]) } else { maximum_number(a, b, mode) }
}

fn median_of_three(a: u16, b: u16, c: u16, mode: FloatMode) -> u16 {
    if [a, b, c].into_iter().any(is_nan16) {
        return minimum_number(minimum_number(a, b, mode), c, mode);
    }
    let (upper, lower) = (maximum_number(a, b, mode), minimum_number(a, b, mode));
    minimum_number(upper, maximum_number(lower, c, mode), mode)
}

/// The result of a function of one number, computed in 64 bits.
pub(crate) fn apply_unary(a: u16, mode: FloatMode, function: fn(f64) -> f64) -> u16 {
    if is_nan16(a) { a | 0x200 } else { finish_result(function(source_value(a, mode)), [a, 0, 0], mode) }
}

fn fractional_part(a: u16, mode: FloatMode) -> u16 {
    let x = source_value(a, mode);
    if x.is_infinite() {
        return NAN16;
    }
    apply_unary(a, mode, |x| (x - x.floor()).min(f64::from(f16_to_f32(0x3bff))))
}

fn exponent_of(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1022
}

fn frexp_exponent(a: u16, mode: FloatMode) -> u32 {
    let x = source_value(a, mode);
    if !x.is_finite() || x == 0.0 { 0 } else { u32::from(exponent_of(x) as u16) }
}

fn frexp_mantissa(a: u16, mode: FloatMode) -> u16 {
    apply_unary(a, mode, |x| if !x.is_finite() || x == 0.0 { x } else { x * 2_f64.powi(-exponent_of(x)) })
}

fn ldexp(a: u16, power: u32, mode: FloatMode) -> u16 {
    if is_nan16(a) {
        return a | 0x200;
    }
    let power = i32::from(power as i16).clamp(-100, 100);
    finish_result(source_value(a, mode) * 2_f64.powi(power), [a, 0, 0], mode)
}

/// Corrects a quotient `q` of `n` by `d` where it is not finite or a source is special.
pub(crate) fn div_fixup(q: u16, d: u16, n: u16) -> u16 {
    let sign = (d ^ n) & 0x8000;
    let (magnitude_d, magnitude_n) = (d & 0x7fff, n & 0x7fff);
    match (magnitude_n, magnitude_d) {
        _ if is_nan16(n) => n | 0x200,
        _ if is_nan16(d) => d | 0x200,
        (0, 0) | (0x7c00, 0x7c00) => 0xfe00,
        (_, 0) | (0x7c00, _) => sign | 0x7c00,
        (0, _) | (_, 0x7c00) => sign,
        _ => sign | q & 0x7fff,
    }
}

/// A row whose sources and result are 16-bit floats, as a function of 16-bit numbers.
macro_rules! row {
    ([$($name:literal),+], |$a:pat_param, $b:pat_param, $c:pat_param, $mode:pat_param| $body:expr, $evidence:expr) => {
        VectorRow::new(
            &[$($name),+],
            [F16; 3],
            F16,
            narrow!(|a, b, c, $mode| {
                let ($a, $b, $c) = (a as u16, b as u16, c as u16);
                u32::from($body)
            }),
            $evidence,
        )
    };
}

#[rustfmt::skip]
pub(crate) const ROWS: &[VectorRow] = &[
    row!(["v_add_f16"], |a, b, _, m| add_f16(a, b, m), Llvm("fadd")),
    row!(["v_sub_f16"], |a, b, _, m| subtract_f16(a, b, m), Llvm("fsub")),
    row!(["v_subrev_f16"], |a, b, _, m| subtract_f16(b, a, m), Llvm("fsub")),
    row!(["v_mul_f16"], |a, b, _, m| multiply_f16(a, b, m), Llvm("fmul")),
    row!(["v_fma_f16", "v_fmac_f16", "v_fmaak_f16", "v_fmamk_f16"], |a, b, c, m| fused_multiply_add(a, b, c, m), Llvm("fma")),
    row!(["v_mad_f16", "v_mac_f16", "v_madak_f16", "v_madmk_f16"], |a, b, c, m| unfused_multiply_add(a, b, c, m), Llvm("fmad")),
    row!(["v_min_f16", "v_min_num_f16"], |a, b, _, m| minimum_number(a, b, m), Llvm("fminnum")),
    row!(["v_max_f16", "v_max_num_f16"], |a, b, _, m| maximum_number(a, b, m), Llvm("fmaxnum")),
    row!(["v_min3_f16", "v_min3_num_f16"], |a, b, c, m| minimum_number(minimum_number(a, b, m), c, m), Llvm("AMDGPUfmin3")),
    row!(["v_max3_f16", "v_max3_num_f16"], |a, b, c, m| maximum_number(maximum_number(a, b, m), c, m), Llvm("AMDGPUfmax3")),
    row!(["v_med3_f16", "v_med3_num_f16"], |a, b, c, m| median_of_three(a, b, c, m), Llvm("AMDGPUfmed3")),
    row!(["v_maxmin_f16", "v_maxmin_num_f16"], |a, b, c, m| minimum_number(maximum_number(a, b, m), c, m), Llvm("fminnum (fmaxnum)")),
    row!(["v_minmax_f16", "v_minmax_num_f16"], |a, b, c, m| maximum_number(minimum_number(a, b, m), c, m), Llvm("fmaxnum (fminnum)")),
    row!(["v_minimum_f16"], |a, b, _, m| ieee_minimum(a, b, m), Llvm("fminimum")),
    row!(["v_maximum_f16"], |a, b, _, m| ieee_maximum(a, b, m), Llvm("fmaximum")),
    row!(["v_minimum3_f16"], |a, b, c, m| ieee_minimum(ieee_minimum(a, b, m), c, m), Llvm("AMDGPUfminimum3")),
    row!(["v_maximum3_f16"], |a, b, c, m| ieee_maximum(ieee_maximum(a, b, m), c, m), Llvm("AMDGPUfmaximum3")),
    row!(["v_maximumminimum_f16"], |a, b, c, m| ieee_minimum(ieee_maximum(a, b, m), c, m), Llvm("fminimum (fmaximum)")),
    row!(["v_minimummaximum_f16"], |a, b, c, m| ieee_maximum(ieee_minimum(a, b, m), c, m), Llvm("fmaximum (fminimum)")),
    row!(["v_floor_f16"], |a, _, _, m| apply_unary(a, m, f64::floor), Llvm("ffloor")),
    row!(["v_ceil_f16"], |a, _, _, m| apply_unary(a, m, f64::ceil), Llvm("fceil")),
    row!(["v_trunc_f16"], |a, _, _, m| apply_unary(a, m, f64::trunc), Llvm("ftrunc")),
    row!(["v_rndne_f16"], |a, _, _, m| apply_unary(a, m, f64::round_ties_even), Llvm("frint")),
    row!(["v_fract_f16"], |a, _, _, m| fractional_part(a, m), Llvm("AMDGPUfract")),
    row!(["v_frexp_mant_f16"], |a, _, _, m| frexp_mantissa(a, m), Llvm("int_amdgcn_frexp_mant")),
    row!(["v_div_fixup_f16"], |a, b, c, _| div_fixup(a, b, c), Llvm("AMDGPUdiv_fixup")),
    VectorRow::new(&["v_frexp_exp_i16_f16"], [F16; 3], B16, narrow!(|a, _, _, m| frexp_exponent(a as u16, m)), Llvm("int_amdgcn_frexp_exp")),
    VectorRow::new(&["v_ldexp_f16"], [F16, B16, B32], F16, narrow!(|a, b, _, m| ldexp(a as u16, b, m).into()), Llvm("fldexp")),
    VectorRow::new(&["v_cvt_f32_f16"], [F16; 3], F32, narrow!(|a, _, _, m| widen_to_f32(a as u16, m)), Llvm("fpextend")),
];

fn subtract_f16(a: u16, b: u16, mode: FloatMode) -> u16 {
    if is_nan16(b) {
        return nan_of16([a, b, 0]);
    }
    add_f16(a, b ^ 0x8000, mode)
}

fn widen_to_f32(a: u16, mode: FloatMode) -> u32 {
    let a = if is_nan16(a) { a | 0x200 } else { mode.flush_source16(a) };
    f16_to_f32(a).to_bits()
}
