//! Conversions between numbers.

use crate::float::{f16_to_f32, quiet_nan32, round_to_f16, round_to_f32};
use crate::half;
use crate::lanes::LaneType::{B16, B32, F16, F32, F64};
use crate::lanes::{LaneType, VectorRow, narrow, wide};
use crate::mode::{FloatMode, Rounding};
use crate::source::MeaningSource::{Document, Llvm};

#[inline]
fn f32_source(bits: u32, mode: FloatMode) -> f32 {
    mode.flush_source32(f32::from_bits(bits))
}

#[inline]
fn f64_source(bits: u64, mode: FloatMode) -> f64 {
    mode.flush_source64(f64::from_bits(bits))
}

fn half_value(bits: u32, mode: FloatMode) -> f32 {
    f16_to_f32(mode.flush_source16(bits as u16))
}

/// A 32-bit float to 16 bits in the rounding of MODE.
pub(crate) fn f32_to_f16(bits: u32, mode: FloatMode) -> u16 {
    let x = f32_source(bits, mode);
    if x.is_nan() {
        round_to_f16(f64::from(x), Rounding::NearestEven)
    } else {
        half::finish_result(f64::from(x), [0; 3], mode)
    }
}

/// Two 32-bit floats to 16 bits, rounded to zero.
pub(crate) fn packed_to_zero(a: u32, b: u32, mode: FloatMode) -> u32 {
    narrow_to_f16_zero(a, &mode) | narrow_to_f16_zero(b, &mode) << 16
}

fn narrow_to_f16_zero(bits: u32, mode: &FloatMode) -> u32 {
    u32::from(round_to_f16(f64::from(f32_source(bits, *mode)), Rounding::Zero))
}

fn narrowed_double(bits: u64, mode: FloatMode) -> u64 {
    let x = f64_source(bits, mode);
    if x.is_nan() {
        let upper = (bits >> 29) as u32 & 0x003f_ffff;
        return u64::from(quiet_nan32((bits >> 32) as u32 & 0x8000_0000 | 0x7f80_0000 | upper));
    }
    u64::from(mode.flush_result32(round_to_f32(x, mode.rounding_f32())).to_bits())
}

fn f32_to_f64(bits: u64, mode: FloatMode) -> u64 {
    f64::from(f32::from_bits(if f32_source(bits as u32, mode).is_nan() {
        quiet_nan32(bits as u32)
    } else {
        f32_source(bits as u32, mode).to_bits()
    }))
    .to_bits()
}

/// A float in [-1, 1] as a signed number of 16 bits.
fn signed_norm(x: f32) -> u32 {
    let scaled = (f64::from(x) * 32767.0).round_ties_even();
    u32::from(scaled.clamp(-32767.0, 32767.0) as i16 as u16)
}

fn unsigned_norm(x: f32) -> u32 {
    let scaled = (f64::from(x) * 65535.0).round_ties_even();
    u32::from(scaled as u16)
}

/// `byte` of the third source is replaced.
fn with_byte(a: u32, number: u32, c: u32, mode: FloatMode) -> u32 {
    let x = f32_source(a, mode);
    let rounded = match mode.rounding_f32() {
        Rounding::NearestEven => x.round_ties_even(),
        Rounding::Up => x.ceil(),
        Rounding::Down => x.floor(),
        Rounding::Zero => x.trunc(),
    };
    let shift = 8 * (number & 3);
    c & !(255 << shift) | u32::from(rounded as u8) << shift
}

/// An integer to a 32-bit float in the rounding of MODE.
#[inline]
fn from_integer(value: f64, mode: FloatMode) -> u32 {
    round_to_f32(value, mode.rounding_f32()).to_bits()
}

fn half_from_integer(value: i32, mode: FloatMode) -> u32 {
    u32::from(half::finish_result(f64::from(value), [0; 3], mode))
}

macro_rules! row {
    ([$($name:literal),+], $from:expr, $to:expr, $function:expr, $evidence:expr) => {
        VectorRow::new(&[$($name),+], [$from; 3], $to, $function, $evidence)
    };
}

const SINGLES: LaneType = F32;

#[rustfmt::skip]
pub(crate) const ROWS: &[VectorRow] = &[
    row!(["v_cvt_f32_i32"], B32, F32, narrow!(|a, _, _, m| from_integer(f64::from(a as i32), m)), Llvm("sint_to_fp")),
    row!(["v_cvt_f32_u32"], B32, F32, narrow!(|a, _, _, m| from_integer(f64::from(a), m)), Llvm("uint_to_fp")),
    row!(["v_cvt_i32_f32"], SINGLES, B32, narrow!(|a, _, _, m| (f32_source(a, m) as i32) as u32), Llvm("fp_to_sint")),
    row!(["v_cvt_u32_f32"], SINGLES, B32, narrow!(|a, _, _, m| f32_source(a, m) as u32), Llvm("fp_to_uint")),
    row!(["v_cvt_rpi_i32_f32", "v_cvt_nearest_i32_f32"], SINGLES, B32,
        narrow!(|a, _, _, m| ((f64::from(f32_source(a, m)) + 0.5).floor() as i32) as u32), Llvm("fp_to_sint (ffloor (fadd 0.5))")),
    row!(["v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"], SINGLES, B32,
        narrow!(|a, _, _, m| (f32_source(a, m).floor() as i32) as u32), Llvm("fp_to_sint (ffloor)")),
    row!(["v_cvt_f32_ubyte0"], B32, F32, narrow!(|a, _, _, _| ((a & 255) as f32).to_bits()), Llvm("AMDGPUcvt_f32_ubyte0")),
    row!(["v_cvt_f32_ubyte1"], B32, F32, narrow!(|a, _, _, _| ((a >> 8 & 255) as f32).to_bits()), Llvm("AMDGPUcvt_f32_ubyte1")),
    row!(["v_cvt_f32_ubyte2"], B32, F32, narrow!(|a, _, _, _| ((a >> 16 & 255) as f32).to_bits()), Llvm("AMDGPUcvt_f32_ubyte2")),
    row!(["v_cvt_f32_ubyte3"], B32, F32, narrow!(|a, _, _, _| ((a >> 24) as f32).to_bits()), Llvm("AMDGPUcvt_f32_ubyte3")),
    row!(["v_cvt_off_f32_i4"], B32, F32,
        narrow!(|a, _, _, _| (((a << 28) as i32 >> 28) as f32 / 16.0).to_bits()), Document("offset of 4 bits in sixteenths")),
    row!(["v_cvt_f16_f32"], SINGLES, F16, narrow!(|a, _, _, m| f32_to_f16(a, m).into()), Llvm("fpround")),
    row!(["v_cvt_pk_f16_f32"], SINGLES, B32,
        narrow!(|a, b, _, m| u32::from(f32_to_f16(a, m)) | u32::from(f32_to_f16(b, m)) << 16), Llvm("fpround")),
    row!(["v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"], SINGLES, B32, narrow!(|a, b, _, m| packed_to_zero(a, b, m)), Llvm("AMDGPUpkrtz_f16_f32")),
    row!(["v_cvt_pknorm_i16_f32", "v_cvt_pk_norm_i16_f32"], SINGLES, B32,
        narrow!(|a, b, _, m| signed_norm(f32_source(a, m)) | signed_norm(f32_source(b, m)) << 16), Llvm("AMDGPUpknorm_i16_f32")),
    row!(["v_cvt_pknorm_u16_f32", "v_cvt_pk_norm_u16_f32"], SINGLES, B32,
        narrow!(|a, b, _, m| unsigned_norm(f32_source(a, m)) | unsigned_norm(f32_source(b, m)) << 16), Llvm("AMDGPUpknorm_u16_f32")),
    row!(["v_cvt_pknorm_i16_f16", "v_cvt_pk_norm_i16_f16"], F16, B32,
        narrow!(|a, b, _, m| signed_norm(half_value(a, m)) | signed_norm(half_value(b, m)) << 16), Document("two normalised numbers")),
    row!(["v_cvt_pknorm_u16_f16", "v_cvt_pk_norm_u16_f16"], F16, B32,
        narrow!(|a, b, _, m| unsigned_norm(half_value(a, m)) | unsigned_norm(half_value(b, m)) << 16), Document("two normalised numbers")),
    row!(["v_cvt_norm_i16_f16"], F16, B16, narrow!(|a, _, _, m| signed_norm(half_value(a, m))), Document("a normalised number")),
    row!(["v_cvt_norm_u16_f16"], F16, B16, narrow!(|a, _, _, m| unsigned_norm(half_value(a, m))), Document("a normalised number")),
    row!(["v_cvt_pk_i16_f32"], SINGLES, B32,
        narrow!(|a, b, _, m| u32::from(f32_source(a, m) as i16 as u16) | u32::from(f32_source(b, m) as i16 as u16) << 16), Document("two integers of 16 bits")),
    row!(["v_cvt_pk_u16_f32"], SINGLES, B32,
        narrow!(|a, b, _, m| u32::from(f32_source(a, m) as u16) | u32::from(f32_source(b, m) as u16) << 16), Document("two integers of 16 bits")),
    VectorRow::new(&["v_cvt_pk_u8_f32"], [F32, B32, B32], B32, narrow!(|a, b, c, m| with_byte(a, b, c, m)), Llvm("int_amdgcn_cvt_pk_u8_f32")),
    row!(["v_cvt_i16_f16"], F16, B16, narrow!(|a, _, _, m| u32::from(half_value(a, m) as i16 as u16)), Llvm("fp_to_sint")),
    row!(["v_cvt_u16_f16"], F16, B16, narrow!(|a, _, _, m| u32::from(half_value(a, m) as u16)), Llvm("fp_to_uint")),
    row!(["v_cvt_f16_i16"], B16, F16, narrow!(|a, _, _, m| half_from_integer(i32::from(a as i16), m)), Llvm("sint_to_fp")),
    row!(["v_cvt_f16_u16"], B16, F16, narrow!(|a, _, _, m| half_from_integer(i32::from(a as u16), m)), Llvm("uint_to_fp")),
    row!(["v_cvt_f64_i32"], B32, F64, wide!(|a, _, _, _| f64::from(a as i32).to_bits()), Llvm("sint_to_fp")),
    row!(["v_cvt_f64_u32"], B32, F64, wide!(|a, _, _, _| f64::from(a as u32).to_bits()), Llvm("uint_to_fp")),
    row!(["v_cvt_f64_f32"], F32, F64, wide!(|a, _, _, m| f32_to_f64(a, m)), Llvm("fpextend")),
    row!(["v_cvt_f32_f64"], F64, F32, wide!(|a, _, _, m| narrowed_double(a, m)), Llvm("fpround")),
    row!(["v_cvt_i32_f64"], F64, B32, wide!(|a, _, _, m| u64::from(f64_source(a, m) as i32 as u32)), Llvm("fp_to_sint")),
    row!(["v_cvt_u32_f64"], F64, B32, wide!(|a, _, _, m| u64::from(f64_source(a, m) as u32)), Llvm("fp_to_uint")),
];
