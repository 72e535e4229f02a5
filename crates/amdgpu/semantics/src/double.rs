//! 64-bit floats. Only rounding to nearest is known here: readers of the rows refuse other modes.

use crate::float::{NAN64, nan_of64, power_of_two};
use crate::lanes::LaneType::{B32, F64};
use crate::lanes::{LANES, LaneFunction, VectorRow, WideFunction, WideLanes, in_usual_mode, wide};
use crate::mode::FloatMode;
use crate::on_long_vectors;
use crate::source::MeaningSource::Llvm;

#[inline]
fn float(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// Which NaN a result is does not depend on the processor that computes it.
#[inline(always)]
fn settle_nans(out: &mut WideLanes, sources: &[&WideLanes; 3]) {
    for lane in 0..LANES {
        let nan = nan_of64([sources[0][lane], sources[1][lane], sources[2][lane]]);
        out[lane] = if float(out[lane]).is_nan() { nan } else { out[lane] };
    }
}

/// A function on lanes of an operation that rounds once.
macro_rules! rounded_function {
    (|$a:ident, $b:ident, $c:ident| $result:expr) => {
        |out, sources, mode| {
            #[inline(always)]
            fn all(out: &mut WideLanes, sources: &[&WideLanes; 3], mode: FloatMode) {
                let mut invalid = false;
                for lane in 0..LANES {
                    let source = |number: usize| mode.flush_source64(float(sources[number][lane]));
                    let ($a, $b, $c) = (source(0), source(1), source(2));
                    let _ = $c;
                    let result: f64 = $result;
                    invalid |= result.is_nan();
                    out[lane] = mode.flush_result64(result).to_bits();
                }
                if invalid {
                    settle_nans(out, sources);
                }
            }
            #[inline(always)]
            fn any_mode(out: &mut WideLanes, sources: &[&WideLanes; 3], mode: FloatMode) {
                in_usual_mode!(all, out, sources, mode);
            }
            on_long_vectors!(any_mode(out: &mut WideLanes, sources: &[&WideLanes; 3], mode: FloatMode))
        }
    };
}

macro_rules! rounded {
    ($($closure:tt)*) => {
        LaneFunction::Wide(rounded_function!($($closure)*))
    };
}

/// A fused multiply-add on lanes; on processors with the instruction, by that.
pub(crate) const FUSED: WideFunction = rounded_function!(|a, b, c| a.mul_add(b, c));

fn number_of(a: u64, b: u64, mode: FloatMode, first: fn(f64, f64) -> bool) -> u64 {
    let (x, y) = (mode.flush_source64(float(a)), mode.flush_source64(float(b)));
    let chosen = match (x.is_nan(), y.is_nan()) {
        (true, true) => return if mode.ieee { a | 1 << 51 } else { a },
        (true, false) => y,
        (false, true) => x,
        _ if first(x, y) => x,
        _ => y,
    };
    mode.flush_result64(chosen).to_bits()
}

fn minimum_number(a: u64, b: u64, mode: FloatMode) -> u64 {
    number_of(a, b, mode, |x, y| x < y || x == y && x.is_sign_negative())
}

fn maximum_number(a: u64, b: u64, mode: FloatMode) -> u64 {
    number_of(a, b, mode, |x, y| x > y || x == y && x.is_sign_positive())
}

fn propagate_nan(a: u64, b: u64, mode: FloatMode, choose: fn(u64, u64, FloatMode) -> u64) -> u64 {
    if float(a).is_nan() || float(b).is_nan() { nan_of64([a, b, 0]) } else { choose(a, b, mode) }
}

fn to_integral(a: u64, mode: FloatMode, function: fn(f64) -> f64) -> u64 {
    let x = mode.flush_source64(float(a));
    if x.is_nan() { nan_of64([a, 0, 0]) } else { function(x).to_bits() }
}

fn fractional_part(a: u64, mode: FloatMode) -> u64 {
    let x = mode.flush_source64(float(a));
    if x.is_nan() {
        return nan_of64([a, 0, 0]);
    }
    if x.is_infinite() {
        return NAN64;
    }
    (x - x.floor()).min(1.0_f64.next_down()).to_bits()
}

/// The exponent of a finite number other than 0 whose mantissa is in [0.5, 1).
pub(crate) fn exponent_of(x: f64) -> i32 {
    match exponent_bit_field(x) {
        0 => exponent_bit_field(x * 2_f64.powi(54)) - 1022 - 54,
        exponent => exponent - 1022,
    }
}

fn exponent_bit_field(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32
}

fn frexp_mantissa(a: u64, mode: FloatMode) -> u64 {
    let x = mode.flush_source64(float(a));
    if x.is_nan() {
        return nan_of64([a, 0, 0]);
    }
    if x.is_infinite() || x == 0.0 { x.to_bits() } else { scale_by_power(x, -exponent_of(x)).to_bits() }
}

fn frexp_exponent(a: u64, mode: FloatMode) -> u64 {
    let x = mode.flush_source64(float(a));
    if !x.is_finite() || x == 0.0 { 0 } else { u64::from(exponent_of(x) as u32) }
}

/// `x * 2^power`, rounded once: steps down keep 53 bits above the smallest normal number.
pub(crate) fn scale_by_power(x: f64, power: i32) -> f64 {
    let (mut result, mut left) = (x, power.clamp(-2200, 2200));
    while left > 1023 {
        result *= power_of_two(1023);
        left -= 1023;
    }
    while left < -1022 {
        result *= power_of_two(-1022 + 53);
        left += 1022 - 53;
    }
    result * power_of_two(left)
}

fn ldexp(a: u64, power: u64, mode: FloatMode) -> u64 {
    let x = mode.flush_source64(float(a));
    if x.is_nan() { nan_of64([a, 0, 0]) } else { mode.flush_result64(scale_by_power(x, power as u32 as i32)).to_bits() }
}

macro_rules! row {
    ([$($name:literal),+], $function:expr, $evidence:expr) => {
        VectorRow::new(&[$($name),+], [F64; 3], F64, $function, $evidence)
    };
}

#[rustfmt::skip]
pub(crate) const ROWS: &[VectorRow] = &[
    row!(["v_add_f64"], rounded!(|a, b, c| a + b), Llvm("fadd")),
    row!(["v_mul_f64"], rounded!(|a, b, c| a * b), Llvm("fmul")),
    row!(["v_fma_f64", "v_fmac_f64", "v_fmaak_f64", "v_fmamk_f64"], LaneFunction::Wide(FUSED), Llvm("fma")),
    row!(["v_min_f64", "v_min_num_f64"], wide!(|a, b, _, m| minimum_number(a, b, m)), Llvm("fminnum")),
    row!(["v_max_f64", "v_max_num_f64"], wide!(|a, b, _, m| maximum_number(a, b, m)), Llvm("fmaxnum")),
    row!(["v_minimum_f64"], wide!(|a, b, _, m| propagate_nan(a, b, m, minimum_number)), Llvm("fminimum")),
    row!(["v_maximum_f64"], wide!(|a, b, _, m| propagate_nan(a, b, m, maximum_number)), Llvm("fmaximum")),
    row!(["v_floor_f64"], wide!(|a, _, _, m| to_integral(a, m, f64::floor)), Llvm("ffloor")),
    row!(["v_ceil_f64"], wide!(|a, _, _, m| to_integral(a, m, f64::ceil)), Llvm("fceil")),
    row!(["v_trunc_f64"], wide!(|a, _, _, m| to_integral(a, m, f64::trunc)), Llvm("ftrunc")),
    row!(["v_rndne_f64"], wide!(|a, _, _, m| to_integral(a, m, f64::round_ties_even)), Llvm("frint")),
    row!(["v_fract_f64"], wide!(|a, _, _, m| fractional_part(a, m)), Llvm("AMDGPUfract")),
    row!(["v_frexp_mant_f64"], wide!(|a, _, _, m| frexp_mantissa(a, m)), Llvm("int_amdgcn_frexp_mant")),
    VectorRow::new(&["v_frexp_exp_i32_f64"], [F64; 3], B32, wide!(|a, _, _, m| frexp_exponent(a, m)), Llvm("int_amdgcn_frexp_exp")),
    VectorRow::new(&["v_ldexp_f64"], [F64, B32, B32], F64, wide!(|a, b, _, m| ldexp(a, b, m)), Llvm("fldexp")),
];
