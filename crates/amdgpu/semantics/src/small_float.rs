//! Brain floats, and products of short vectors.

use crate::float::{bf16_to_f32, f16_to_f32, nan_of32, quiet_nan32, round_to_bf16, round_to_f32};
use crate::lanes::LaneType::{B32, Bf16, F16, F32};
use crate::lanes::{LaneType, VectorRow, narrow};
use crate::mode::{FloatMode, Rounding};
use crate::rounding::{add_odd, fma_odd};
use crate::source::MeaningSource::{Document, Llvm};
use crate::transcendental::{cosine_of_turns, reciprocal, reciprocal_root, sine_of_turns};

/// A brain float as a result, `exact` rounded to odd.
pub(crate) fn to_bf16(exact: f64, mode: FloatMode) -> u16 {
    let _ = mode;
    round_to_bf16(exact, Rounding::NearestEven)
}

fn bf16_bits(bits: u32) -> u32 {
    u32::from(to_bf16(f64::from(f32::from_bits(bits)), FloatMode::PLAIN))
}

/// A function of a brain float.
fn of_bf16(a: u32, function: fn(f64) -> f64) -> u32 {
    u32::from(to_bf16(function(f64::from(bf16_to_f32(a as u16))), FloatMode::PLAIN))
}

/// `a.low * b.low + a.high * b.high + c`, with a rounding after the products' sum and after the second sum.
fn dot2_product(a: u32, b: u32, c: u32, value: fn(u16) -> f32, mode: FloatMode) -> u32 {
    let third = f64::from(mode.flush_source32(f32::from_bits(c)));
    let first = round_to_f32(fma_odd(1.0, half_dot2_product(16, &value, a, b), third), mode.rounding_f32());
    let exact = add_odd(half_dot2_product(0, &value, a, b), f64::from(first));
    if exact.is_nan() {
        nan_of32([c, 0, 0])
    } else {
        mode.flush_result32(round_to_f32(exact, mode.rounding_f32())).to_bits()
    }
}

fn half_dot2_product(shift: u32, value: &fn(u16) -> f32, a: u32, b: u32) -> f64 {
    f64::from(value((a >> shift) as u16)) * f64::from(value((b >> shift) as u16))
}

/// The number `index` of `bits` bits.
fn packed_integer(value: u32, index: u32, bits: u32, signed: bool) -> i64 {
    let raw = value >> (index * bits) & (u32::MAX >> (32 - bits));
    if signed { i64::from((raw << (32 - bits)) as i32 >> (32 - bits)) } else { i64::from(raw) }
}

/// The sum of the products of numbers of `bits` bits, plus `c`.
pub fn integer_dot(a: u32, b: u32, c: u32, bits: u32, signed: [bool; 2]) -> i64 {
    let products = (0..32 / bits)
        .map(|index| packed_integer(a, index, bits, signed[0]) * packed_integer(b, index, bits, signed[1]));
    let third = if signed[0] || signed[1] { i64::from(c as i32) } else { i64::from(c) };
    products.sum::<i64>() + third
}

macro_rules! dot {
    ($name:literal, $bits:literal, $signed:literal) => {
        VectorRow::new(
            &[$name],
            [B32; 3],
            B32,
            narrow!(|a, b, c, _| integer_dot(a, b, c, $bits, [$signed; 2]) as u32),
            Llvm(concat!("int_amdgcn_", $name)),
        )
        .with_clamp(narrow!(|a, b, c, _| {
            let sum = integer_dot(a, b, c, $bits, [$signed; 2]);
            if $signed { sum.clamp(-1 << 31, (1 << 31) - 1) as u32 } else { sum.clamp(0, 0xffff_ffff) as u32 }
        }))
    };
}

macro_rules! of_bf16 {
    ($name:literal, $function:expr) => {
        VectorRow::new(&[$name], [Bf16; 3], Bf16, narrow!(|a, _, _, _| of_bf16(a, $function)), Llvm("bf16 intrinsic"))
    };
}

const HALF_DOT: [LaneType; 3] = [B32, B32, F32];

#[rustfmt::skip]
pub(crate) const ROWS: &[VectorRow] = &[
    VectorRow::new(&["v_cvt_f32_bf16"], [Bf16; 3], F32, narrow!(|a, _, _, _| bf16_to_f32_quiet(a)), Llvm("fpextend")),
    VectorRow::new(&["v_cvt_pk_bf16_f32"], [F32; 3], B32, narrow!(|a, b, _, _| bf16_bits(a) | bf16_bits(b) << 16), Llvm("fpround")),
    VectorRow::new(&["v_dot2_f32_f16", "v_dot2c_f32_f16", "v_dot2acc_f32_f16"], HALF_DOT, F32,
        narrow!(|a, b, c, m| dot2_product(a, b, c, f16_to_f32, m)), Llvm("int_amdgcn_fdot2")),
    VectorRow::new(&["v_dot2_f32_bf16"], HALF_DOT, F32, narrow!(|a, b, c, m| dot2_product(a, b, c, bf16_to_f32, m)), Llvm("int_amdgcn_fdot2_f32_bf16")),
    VectorRow::new(&["v_dot2c_f32_bf16"], HALF_DOT, F32, narrow!(|a, b, c, m| dot2_product(a, b, c, bf16_to_f32, m)), Llvm("int_amdgcn_fdot2c_f32_bf16")),
    dot!("v_dot2_i32_i16", 16, true),
    dot!("v_dot2c_i32_i16", 16, true),
    dot!("v_dot8c_i32_i4", 4, true),
    dot!("v_dot2_u32_u16", 16, false),
    dot!("v_dot4_i32_i8", 8, true),
    dot!("v_dot4c_i32_i8", 8, true),
    dot!("v_dot4_u32_u8", 8, false),
    dot!("v_dot8_i32_i4", 4, true),
    dot!("v_dot8_u32_u4", 4, false),
    of_bf16!("v_rcp_bf16", reciprocal),
    of_bf16!("v_rsq_bf16", reciprocal_root),
    of_bf16!("v_sqrt_bf16", f64::sqrt),
    of_bf16!("v_exp_bf16", f64::exp2),
    of_bf16!("v_log_bf16", f64::log2),
    of_bf16!("v_sin_bf16", sine_of_turns),
    of_bf16!("v_cos_bf16", cosine_of_turns),
    of_bf16!("v_tanh_bf16", f64::tanh),
    VectorRow::new(&["v_dot2_f16_f16"], [B32, B32, F16], F16, narrow!(|a, b, c, m| dot2_half(a, b, c, m)), Document("products of two halves")),
];

fn bf16_to_f32_quiet(a: u32) -> u32 {
    let bits = a << 16;
    if f32::from_bits(bits).is_nan() { quiet_nan32(bits) } else { bits }
}

fn dot2_half(a: u32, b: u32, c: u32, mode: FloatMode) -> u32 {
    let high = crate::half::fused_multiply_add((a >> 16) as u16, (b >> 16) as u16, c as u16, mode);
    u32::from(crate::half::fused_multiply_add(a as u16, b as u16, high, mode))
}
