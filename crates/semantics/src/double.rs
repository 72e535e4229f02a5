//! 64-bit floats. Only rounding to nearest is known here: readers of the rows refuse other modes.

use crate::float::{NAN64, nan_of64};
use crate::lanes::LaneType::{B32, F64};
use crate::lanes::{LANES, LaneFunction, VectorRow, WideLanes, wide};
use crate::mode::FloatMode;
use crate::source::MeaningSource::Llvm;

#[inline]
fn float(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// A result.
#[inline]
fn finished(result: f64, sources: [u64; 3], mode: FloatMode) -> u64 {
    if result.is_nan() { nan_of64(sources) } else { mode.result64(result).to_bits() }
}

macro_rules! arithmetic {
    (|$a:ident, $b:ident, $c:ident| $body:expr) => {
        wide!(|a, b, c, m| {
            let ($a, $b, $c) = (m.source64(float(a)), m.source64(float(b)), m.source64(float(c)));
            let _ = ($b, $c);
            finished($body, [a, b, c], m)
        })
    };
}

fn fused(out: &mut WideLanes, sources: &[&WideLanes; 3], mode: FloatMode) {
    if mode.plain16() {
        fused_plain(out, sources);
    } else {
        for lane in 0..LANES {
            let source = |number: usize| mode.source64(float(sources[number][lane]));
            out[lane] = mode.result64(source(0).mul_add(source(1), source(2))).to_bits();
        }
    }
    for lane in 0..LANES {
        if float(out[lane]).is_nan() {
            out[lane] = nan_of64([sources[0][lane], sources[1][lane], sources[2][lane]]);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "a function for processors with FMA")]
fn fused_plain(out: &mut WideLanes, sources: &[&WideLanes; 3]) {
    if is_x86_feature_detected!("fma") && is_x86_feature_detected!("avx") {
        // SAFETY: the processor has both features.
        unsafe { fused_by_instruction(out, sources) }
    } else {
        fused_portable(out, sources);
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn fused_plain(out: &mut WideLanes, sources: &[&WideLanes; 3]) {
    fused_portable(out, sources);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "fma,avx")]
fn fused_by_instruction(out: &mut WideLanes, sources: &[&WideLanes; 3]) {
    for lane in 0..LANES {
        out[lane] = float(sources[0][lane]).mul_add(float(sources[1][lane]), float(sources[2][lane])).to_bits();
    }
}

fn fused_portable(out: &mut WideLanes, sources: &[&WideLanes; 3]) {
    for lane in 0..LANES {
        out[lane] = float(sources[0][lane]).mul_add(float(sources[1][lane]), float(sources[2][lane])).to_bits();
    }
}

fn number_of(a: u64, b: u64, mode: FloatMode, first: fn(f64, f64) -> bool) -> u64 {
    let (x, y) = (mode.source64(float(a)), mode.source64(float(b)));
    let chosen = match (x.is_nan(), y.is_nan()) {
        (true, true) => return if mode.ieee { a | 1 << 51 } else { a },
        (true, false) => y,
        (false, true) => x,
        _ if first(x, y) => x,
        _ => y,
    };
    mode.result64(chosen).to_bits()
}

fn minimum_number(a: u64, b: u64, mode: FloatMode) -> u64 {
    number_of(a, b, mode, |x, y| x < y || x == y && x.is_sign_negative())
}

fn maximum_number(a: u64, b: u64, mode: FloatMode) -> u64 {
    number_of(a, b, mode, |x, y| x > y || x == y && x.is_sign_positive())
}

fn propagating(a: u64, b: u64, mode: FloatMode, choose: fn(u64, u64, FloatMode) -> u64) -> u64 {
    if float(a).is_nan() || float(b).is_nan() { nan_of64([a, b, 0]) } else { choose(a, b, mode) }
}

fn to_integral(a: u64, mode: FloatMode, function: fn(f64) -> f64) -> u64 {
    let x = mode.source64(float(a));
    if x.is_nan() { nan_of64([a, 0, 0]) } else { function(x).to_bits() }
}

fn fraction(a: u64, mode: FloatMode) -> u64 {
    let x = mode.source64(float(a));
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
    let field = |x: f64| (x.to_bits() >> 52 & 0x7ff) as i32;
    match field(x) {
        0 => field(x * 2_f64.powi(54)) - 1022 - 54,
        exponent => exponent - 1022,
    }
}

fn mantissa(a: u64, mode: FloatMode) -> u64 {
    let x = mode.source64(float(a));
    if x.is_nan() {
        return nan_of64([a, 0, 0]);
    }
    if x.is_infinite() || x == 0.0 { x.to_bits() } else { scaled(x, -exponent_of(x)).to_bits() }
}

fn exponent(a: u64, mode: FloatMode) -> u64 {
    let x = mode.source64(float(a));
    if !x.is_finite() || x == 0.0 { 0 } else { u64::from(exponent_of(x) as u32) }
}

/// `x * 2^power`, rounded once: steps down keep 53 bits above the smallest normal number.
pub(crate) fn scaled(x: f64, power: i32) -> f64 {
    let (mut result, mut left) = (x, power.clamp(-2200, 2200));
    while left > 1023 {
        result *= 2_f64.powi(1023);
        left -= 1023;
    }
    while left < -1022 {
        result *= 2_f64.powi(-1022 + 53);
        left += 1022 - 53;
    }
    result * 2_f64.powi(left)
}

fn ldexp(a: u64, power: u64, mode: FloatMode) -> u64 {
    let x = mode.source64(float(a));
    if x.is_nan() { nan_of64([a, 0, 0]) } else { mode.result64(scaled(x, power as u32 as i32)).to_bits() }
}

macro_rules! row {
    ([$($name:literal),+], $function:expr, $evidence:expr) => {
        VectorRow::new(&[$($name),+], [F64; 3], F64, $function, $evidence)
    };
}

#[rustfmt::skip]
pub(crate) const ROWS: &[VectorRow] = &[
    row!(["v_add_f64"], arithmetic!(|a, b, c| a + b), Llvm("fadd")),
    row!(["v_mul_f64"], arithmetic!(|a, b, c| a * b), Llvm("fmul")),
    row!(["v_fma_f64", "v_fmac_f64", "v_fmaak_f64", "v_fmamk_f64"], LaneFunction::Wide(fused), Llvm("fma")),
    row!(["v_min_f64", "v_min_num_f64"], wide!(|a, b, _, m| minimum_number(a, b, m)), Llvm("fminnum")),
    row!(["v_max_f64", "v_max_num_f64"], wide!(|a, b, _, m| maximum_number(a, b, m)), Llvm("fmaxnum")),
    row!(["v_minimum_f64"], wide!(|a, b, _, m| propagating(a, b, m, minimum_number)), Llvm("fminimum")),
    row!(["v_maximum_f64"], wide!(|a, b, _, m| propagating(a, b, m, maximum_number)), Llvm("fmaximum")),
    row!(["v_floor_f64"], wide!(|a, _, _, m| to_integral(a, m, f64::floor)), Llvm("ffloor")),
    row!(["v_ceil_f64"], wide!(|a, _, _, m| to_integral(a, m, f64::ceil)), Llvm("fceil")),
    row!(["v_trunc_f64"], wide!(|a, _, _, m| to_integral(a, m, f64::trunc)), Llvm("ftrunc")),
    row!(["v_rndne_f64"], wide!(|a, _, _, m| to_integral(a, m, f64::round_ties_even)), Llvm("frint")),
    row!(["v_fract_f64"], wide!(|a, _, _, m| fraction(a, m)), Llvm("AMDGPUfract")),
    row!(["v_frexp_mant_f64"], wide!(|a, _, _, m| mantissa(a, m)), Llvm("int_amdgcn_frexp_mant")),
    VectorRow::new(&["v_frexp_exp_i32_f64"], [F64; 3], B32, wide!(|a, _, _, m| exponent(a, m)), Llvm("int_amdgcn_frexp_exp")),
    VectorRow::new(&["v_ldexp_f64"], [F64, B32, B32], F64, wide!(|a, b, _, m| ldexp(a, b, m)), Llvm("fldexp")),
];
