//! Operations on two numbers in one register (or register pair): the same function for each.

use crate::float::bf16_to_f32;
use crate::half;
use crate::lanes::LaneType::{B16, B64, Bf16, F16, F32, F64};
use crate::lanes::{LaneFunction, LaneType, narrow, wide};
use crate::mode::FloatMode;
use crate::rounding::{add_odd, fma_odd};
use crate::small_float::to_bf16;
use crate::source::MeaningSource::{self, Llvm};

#[derive(Debug, Clone, Copy)]
pub struct PackedRow {
    pub name: &'static str,
    /// Type of a number. Those of 16 bits are in halves of a register, others in registers or pairs.
    pub of: LaneType,
    /// The computation for one number.
    pub function: LaneFunction,
    /// The same with `clamp`, for integers.
    pub clamped: Option<LaneFunction>,
    /// Where the meaning is from.
    pub evidence: MeaningSource,
}

/// A function of brain floats that rounds once.
fn apply_bf16(a: u32, b: u32, c: u32, exact: fn(f64, f64, f64) -> f64) -> u32 {
    let [x, y, z] = [a, b, c].map(|bits| f64::from(bf16_to_f32(bits as u16)));
    u32::from(to_bf16(exact(x, y, z), FloatMode::PLAIN))
}

fn brain_number(a: u32, b: u32, larger: bool) -> u32 {
    let mode = FloatMode::PLAIN;
    let (x, y) = (a << 16, b << 16);
    let chosen =
        if larger { crate::single::maximum_number(x, y, mode) } else { crate::single::minimum_number(x, y, mode) };
    chosen >> 16
}

macro_rules! halves {
    ($name:literal, |$a:pat_param, $b:pat_param, $c:pat_param, $mode:pat_param| $body:expr, $evidence:expr) => {
        PackedRow {
            name: $name,
            of: F16,
            function: narrow!(|a, b, c, $mode| {
                let ($a, $b, $c) = (a as u16, b as u16, c as u16);
                u32::from($body)
            }),
            clamped: None,
            evidence: $evidence,
        }
    };
}

macro_rules! integers {
    ($name:literal, |$a:pat_param, $b:pat_param, $c:pat_param| $body:expr, $evidence:expr) => {
        PackedRow {
            name: $name,
            of: B16,
            function: narrow!(|a, b, c, _| {
                let ($a, $b, $c) = (a as u16, b as u16, c as u16);
                u32::from($body)
            }),
            clamped: None,
            evidence: $evidence,
        }
    };
    ($name:literal, |$a:pat_param, $b:pat_param, $c:pat_param| $body:expr, $clamped:expr, $evidence:expr) => {
        PackedRow {
            clamped: Some(narrow!(|a, b, c, _| {
                let ($a, $b, $c) = (a as u16, b as u16, c as u16);
                u32::from($clamped)
            })),
            ..integers!($name, |$a, $b, $c| $body, $evidence)
        }
    };
}

macro_rules! row {
    ($name:literal, $of:expr, $function:expr, $evidence:expr) => {
        PackedRow { name: $name, of: $of, function: $function, clamped: None, evidence: $evidence }
    };
}

/// The function of the row of `name`.
const fn function_of(rows: &[crate::VectorRow], name: &str) -> LaneFunction {
    let mut number = 0;
    while number < rows.len() {
        if equal_strings(rows[number].names[0], name) {
            return rows[number].function;
        }
        number += 1;
    }
    panic!("no such row")
}

const fn equal_strings(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut number = 0;
    while a.len() == b.len() && number < a.len() {
        if a[number] != b[number] {
            return false;
        }
        number += 1;
    }
    a.len() == b.len()
}

#[rustfmt::skip]
pub(crate) const ROWS: &[PackedRow] = &[
    halves!("v_pk_add_f16", |a, b, _, m| half::add_f16(a, b, m), Llvm("fadd")),
    halves!("v_pk_mul_f16", |a, b, _, m| half::multiply_f16(a, b, m), Llvm("fmul")),
    halves!("v_pk_fma_f16", |a, b, c, m| half::fused_multiply_add(a, b, c, m), Llvm("fma")),
    halves!("v_pk_fmac_f16", |a, b, c, m| half::fused_multiply_add(a, b, c, m), Llvm("fma")),
    halves!("v_pk_min_f16", |a, b, _, m| half::minimum_number(a, b, m), Llvm("fminnum")),
    halves!("v_pk_max_f16", |a, b, _, m| half::maximum_number(a, b, m), Llvm("fmaxnum")),
    halves!("v_pk_min_num_f16", |a, b, _, m| half::minimum_number(a, b, m), Llvm("fminnum")),
    halves!("v_pk_max_num_f16", |a, b, _, m| half::maximum_number(a, b, m), Llvm("fmaxnum")),
    halves!("v_pk_min3_num_f16", |a, b, c, m| half::minimum_number(half::minimum_number(a, b, m), c, m), Llvm("AMDGPUfmin3")),
    halves!("v_pk_max3_num_f16", |a, b, c, m| half::maximum_number(half::maximum_number(a, b, m), c, m), Llvm("AMDGPUfmax3")),
    halves!("v_pk_minimum_f16", |a, b, _, m| half::ieee_minimum(a, b, m), Llvm("fminimum")),
    halves!("v_pk_maximum_f16", |a, b, _, m| half::ieee_maximum(a, b, m), Llvm("fmaximum")),
    halves!("v_pk_minimum3_f16", |a, b, c, m| half::ieee_minimum(half::ieee_minimum(a, b, m), c, m), Llvm("AMDGPUfminimum3")),
    halves!("v_pk_maximum3_f16", |a, b, c, m| half::ieee_maximum(half::ieee_maximum(a, b, m), c, m), Llvm("AMDGPUfmaximum3")),
    integers!("v_pk_add_u16", |a, b, _| a.wrapping_add(b), a.saturating_add(b), Llvm("add")),
    integers!("v_pk_sub_u16", |a, b, _| a.wrapping_sub(b), a.saturating_sub(b), Llvm("sub")),
    integers!("v_pk_add_i16", |a, b, _| a.wrapping_add(b), (a as i16).saturating_add(b as i16) as u16, Llvm("add")),
    integers!("v_pk_sub_i16", |a, b, _| a.wrapping_sub(b), (a as i16).saturating_sub(b as i16) as u16, Llvm("sub")),
    integers!("v_pk_mul_lo_u16", |a, b, _| a.wrapping_mul(b), Llvm("mul")),
    integers!("v_pk_mad_u16", |a, b, c| a.wrapping_mul(b).wrapping_add(c), Llvm("add (mul)")),
    integers!("v_pk_mad_i16", |a, b, c| a.wrapping_mul(b).wrapping_add(c), Llvm("add (mul)")),
    integers!("v_pk_min_u16", |a, b, _| a.min(b), Llvm("umin")),
    integers!("v_pk_max_u16", |a, b, _| a.max(b), Llvm("umax")),
    integers!("v_pk_min_i16", |a, b, _| (a as i16).min(b as i16) as u16, Llvm("smin")),
    integers!("v_pk_max_i16", |a, b, _| (a as i16).max(b as i16) as u16, Llvm("smax")),
    integers!("v_pk_min3_u16", |a, b, c| a.min(b).min(c), Llvm("umin (umin)")),
    integers!("v_pk_max3_u16", |a, b, c| a.max(b).max(c), Llvm("umax (umax)")),
    integers!("v_pk_min3_i16", |a, b, c| (a as i16).min(b as i16).min(c as i16) as u16, Llvm("smin (smin)")),
    integers!("v_pk_max3_i16", |a, b, c| (a as i16).max(b as i16).max(c as i16) as u16, Llvm("smax (smax)")),
    integers!("v_pk_add_max_u16", |a, b, c| a.wrapping_add(b).max(c), Llvm("umax (add)")),
    integers!("v_pk_add_min_u16", |a, b, c| a.wrapping_add(b).min(c), Llvm("umin (add)")),
    integers!("v_pk_add_max_i16", |a, b, c| (a.wrapping_add(b) as i16).max(c as i16) as u16, Llvm("smax (add)")),
    integers!("v_pk_add_min_i16", |a, b, c| (a.wrapping_add(b) as i16).min(c as i16) as u16, Llvm("smin (add)")),
    integers!("v_pk_lshlrev_b16", |a, b, _| b << (a & 15), Llvm("shl")),
    integers!("v_pk_lshrrev_b16", |a, b, _| b >> (a & 15), Llvm("srl")),
    integers!("v_pk_ashrrev_i16", |a, b, _| (b as i16 >> (a & 15)) as u16, Llvm("sra")),
    row!("v_pk_add_bf16", Bf16, narrow!(|a, b, c, _| apply_bf16(a, b, c, |x, y, _| add_odd(x, y))), Llvm("fadd")),
    row!("v_pk_mul_bf16", Bf16, narrow!(|a, b, c, _| apply_bf16(a, b, c, |x, y, _| x * y)), Llvm("fmul")),
    row!("v_pk_fma_bf16", Bf16, narrow!(|a, b, c, _| apply_bf16(a, b, c, fma_odd)), Llvm("fma")),
    row!("v_pk_min_num_bf16", Bf16, narrow!(|a, b, _, _| brain_number(a, b, false)), Llvm("fminnum")),
    row!("v_pk_max_num_bf16", Bf16, narrow!(|a, b, _, _| brain_number(a, b, true)), Llvm("fmaxnum")),
    row!("v_pk_add_f32", F32, function_of(crate::single::ROWS, "v_add_f32"), Llvm("fadd")),
    row!("v_pk_mul_f32", F32, function_of(crate::single::ROWS, "v_mul_f32"), Llvm("fmul")),
    row!("v_pk_fma_f32", F32, function_of(crate::single::ROWS, "v_fma_f32"), Llvm("fma")),
    row!("v_pk_add_f64", F64, function_of(crate::double::ROWS, "v_add_f64"), Llvm("fadd")),
    row!("v_pk_mul_f64", F64, function_of(crate::double::ROWS, "v_mul_f64"), Llvm("fmul")),
    row!("v_pk_fma_f64", F64, function_of(crate::double::ROWS, "v_fma_f64"), Llvm("fma")),
    row!("v_pk_add_nc_u64", B64, wide!(|a, b, _, _| a.wrapping_add(b)), Llvm("add")),
    row!("v_pk_sub_nc_u64", B64, wide!(|a, b, _, _| a.wrapping_sub(b)), Llvm("sub")),
];
