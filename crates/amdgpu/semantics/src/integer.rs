//! Integer and bit operations of 16 and 32 bits.

use crate::lanes::LaneType::{B16, B32, F16, F32};
use crate::lanes::{LaneType, VectorRow, carry, narrow};
use crate::source::MeaningSource::{Document, Llvm};

const WORDS: [LaneType; 3] = [B32; 3];
const HALVES: [LaneType; 3] = [B16; 3];

/// The low 24 bits with their sign.
#[inline]
fn sign_extend24(value: u32) -> i32 {
    (value << 8) as i32 >> 8
}

#[inline]
fn zero_extend24(value: u32) -> u32 {
    value & 0xff_ffff
}

#[inline]
fn sign_extend16(value: u32) -> i32 {
    i32::from(value as i16)
}

#[inline]
fn low_u16(value: u32) -> u16 {
    value as u16
}

#[inline]
fn median_of_three<T: Ord + Copy>(a: T, b: T, c: T) -> T {
    a.max(b).min(a.min(b).max(c))
}

/// Byte `number` of `value`.
#[inline]
fn byte_at(value: u32, number: u32) -> u32 {
    value >> (8 * number) & 255
}

/// Sum of the differences of bytes; with `masked` those of which the second source's byte is 0 do not count.
fn byte_differences(a: u32, b: u32, masked: bool) -> u32 {
    (0..4)
        .filter(|number| !masked || byte_at(b, *number) != 0)
        .map(|number| byte_at(a, number).abs_diff(byte_at(b, number)))
        .sum()
}

/// The byte of the pair `high:low` that a selector of `v_perm_b32` names.
fn permuted_byte(high: u32, low: u32, selector: u32) -> u32 {
    let pair = u64::from(high) << 32 | u64::from(low);
    match selector {
        0..=7 => (pair >> (8 * selector)) as u32 & 255,
        8..=11 => (pair >> (16 * (selector - 8) + 15) & 1) as u32 * 255,
        12 => 0,
        _ => 255,
    }
}

fn permute_bytes(high: u32, low: u32, selectors: u32) -> u32 {
    (0..4).fold(0, |result, number| result | permuted_byte(high, low, byte_at(selectors, number)) << (8 * number))
}

/// Position of the first bit from the top that differs from the sign; -1 if none does.
fn leading_sign(value: u32) -> u32 {
    let differing = (value ^ ((value as i32) >> 31) as u32).leading_zeros();
    if differing == 32 { u32::MAX } else { differing }
}

/// Bits of three sources combined by a truth table, whose bit `4a + 2b + c` is the result.
#[inline]
pub fn combine_bits(a: u32, b: u32, c: u32, table: u32) -> u32 {
    (0..8).fold(0, |result, number| {
        let pick = |value: u32, bit: u32| if number >> bit & 1 != 0 { value } else { !value };
        let all = 0_u32.wrapping_sub(table >> number & 1);
        result | all & pick(a, 2) & pick(b, 1) & pick(c, 0)
    })
}

fn averaged_bytes(a: u32, b: u32, round: u32) -> u32 {
    (0..4).fold(0, |result, number| result | average_byte_pair(number, a, b, round) << (8 * number))
}

fn average_byte_pair(number: u32, a: u32, b: u32, round: u32) -> u32 {
    (byte_at(a, number) + byte_at(b, number) + (byte_at(round, number) & 1)) >> 1
}

fn saturated_u8(value: i32) -> u32 {
    value.clamp(0, 255) as u32
}

macro_rules! row {
    ([$($name:literal),+], $sources:expr, $result:expr, $function:expr, $evidence:expr) => {
        VectorRow::new(&[$($name),+], $sources, $result, $function, $evidence)
    };
}

/// Two numbers, shifted to the right and held in a range, as bytes.
fn shifted_bytes(a: u32, b: u32, by: u32, least: i32, most: i32) -> u32 {
    u32::from(shift_clamp_byte(a, by, least, most)) | u32::from(shift_clamp_byte(b, by, least, most)) << 8
}

fn shift_clamp_byte(value: u32, by: u32, least: i32, most: i32) -> u8 {
    (value as i32 >> (by & 31)).clamp(least, most) as u8
}

#[rustfmt::skip]
pub(crate) const ROWS: &[VectorRow] = &[
    VectorRow::new(&["v_prng_b32"], [B32; 3], B32, narrow!(|a, _, _, _| a << 1 ^ if a >> 31 != 0 { 197 } else { 0 }), Document("a step of a shift register")),
    VectorRow::new(&["v_ashr_pk_i8_i32"], [B32; 3], B16, narrow!(|a, b, c, _| shifted_bytes(a, b, c, -128, 127)), Document("two shifted numbers as signed bytes")),
    VectorRow::new(&["v_ashr_pk_u8_i32"], [B32; 3], B16, narrow!(|a, b, c, _| shifted_bytes(a, b, c, 0, 255)), Document("two shifted numbers as bytes")),
    row!(["v_mov_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32"], WORDS, B32, narrow!(|a, _, _, _| a), Llvm("copy")),
    row!(["v_mov_b16"], HALVES, B16, narrow!(|a, _, _, _| a), Llvm("copy")),
    row!(["v_not_b32"], WORDS, B32, narrow!(|a, _, _, _| !a), Llvm("not")),
    row!(["v_not_b16"], HALVES, B16, narrow!(|a, _, _, _| !a), Llvm("not")),
    row!(["v_and_b32"], WORDS, B32, narrow!(|a, b, _, _| a & b), Llvm("and")),
    row!(["v_or_b32"], WORDS, B32, narrow!(|a, b, _, _| a | b), Llvm("or")),
    row!(["v_xor_b32"], WORDS, B32, narrow!(|a, b, _, _| a ^ b), Llvm("xor")),
    row!(["v_xnor_b32"], WORDS, B32, narrow!(|a, b, _, _| !(a ^ b)), Llvm("not (xor)")),
    row!(["v_and_b16"], HALVES, B16, narrow!(|a, b, _, _| a & b), Llvm("and")),
    row!(["v_or_b16"], HALVES, B16, narrow!(|a, b, _, _| a | b), Llvm("or")),
    row!(["v_xor_b16"], HALVES, B16, narrow!(|a, b, _, _| a ^ b), Llvm("xor")),
    row!(["v_and_or_b32"], WORDS, B32, narrow!(|a, b, c, _| a & b | c), Llvm("or (and)")),
    row!(["v_or3_b32"], WORDS, B32, narrow!(|a, b, c, _| a | b | c), Llvm("or (or)")),
    row!(["v_xor3_b32"], WORDS, B32, narrow!(|a, b, c, _| a ^ b ^ c), Llvm("xor (xor)")),
    row!(["v_bfi_b32"], WORDS, B32, narrow!(|a, b, c, _| a & b | !a & c), Llvm("or (and), (and (not))")),
    row!(["v_bfm_b32"], WORDS, B32, narrow!(|a, b, _, _| ((1_u32 << (a & 31)) - 1) << (b & 31)), Llvm("shl (sub (shl 1), 1)")),
    row!(["v_bfe_u32"], WORDS, B32,
        narrow!(|a, b, c, _| a >> (b & 31) & ((1_u32 << (c & 31)) - 1)), Llvm("AMDGPUbfe_u32")),
    row!(["v_bfe_i32"], WORDS, B32, narrow!(|a, b, c, _| signed_bit_field(a, b & 31, c & 31)), Llvm("AMDGPUbfe_i32")),
    row!(["v_bfrev_b32"], WORDS, B32, narrow!(|a, _, _, _| a.reverse_bits()), Llvm("bitreverse")),
    row!(["v_bcnt_u32_b32"], WORDS, B32, narrow!(|a, b, _, _| a.count_ones().wrapping_add(b)), Llvm("add (ctpop)")),
    row!(["v_ffbh_u32", "v_clz_i32_u32"], WORDS, B32,
        narrow!(|a, _, _, _| if a == 0 { u32::MAX } else { a.leading_zeros() }), Llvm("AMDGPUffbh_u32")),
    row!(["v_ffbl_b32", "v_ctz_i32_b32"], WORDS, B32,
        narrow!(|a, _, _, _| if a == 0 { u32::MAX } else { a.trailing_zeros() }), Llvm("AMDGPUffbl_b32")),
    row!(["v_ffbh_i32", "v_cls_i32"], WORDS, B32, narrow!(|a, _, _, _| leading_sign(a)), Llvm("int_amdgcn_sffbh")),

    row!(["v_add_nc_u32", "v_add_u32"], WORDS, B32, narrow!(|a, b, _, _| a.wrapping_add(b)), Llvm("add"))
        .with_clamp(narrow!(|a, b, _, _| a.saturating_add(b))),
    row!(["v_sub_nc_u32", "v_sub_u32"], WORDS, B32, narrow!(|a, b, _, _| a.wrapping_sub(b)), Llvm("sub"))
        .with_clamp(narrow!(|a, b, _, _| a.saturating_sub(b))),
    row!(["v_subrev_nc_u32", "v_subrev_u32"], WORDS, B32, narrow!(|a, b, _, _| b.wrapping_sub(a)), Llvm("sub"))
        .with_clamp(narrow!(|a, b, _, _| b.saturating_sub(a))),
    row!(["v_add_nc_i32", "v_add_i32"], WORDS, B32, narrow!(|a, b, _, _| a.wrapping_add(b)), Llvm("add"))
        .with_clamp(narrow!(|a, b, _, _| (a as i32).saturating_add(b as i32) as u32)),
    row!(["v_sub_nc_i32", "v_sub_i32"], WORDS, B32, narrow!(|a, b, _, _| a.wrapping_sub(b)), Llvm("sub"))
        .with_clamp(narrow!(|a, b, _, _| (a as i32).saturating_sub(b as i32) as u32)),
    row!(["v_add_co_u32"], WORDS, B32, carry!(|a, b, _, _, _| a.overflowing_add(b)), Llvm("uaddo")),
    row!(["v_sub_co_u32"], WORDS, B32, carry!(|a, b, _, _, _| a.overflowing_sub(b)), Llvm("usubo")),
    row!(["v_subrev_co_u32"], WORDS, B32, carry!(|a, b, _, _, _| b.overflowing_sub(a)), Llvm("usubo")),
    row!(["v_add_co_ci_u32", "v_addc_co_u32"], WORDS, B32, carry!(|a, b, _, bit, _| with_carry(a, b, bit)), Llvm("uaddo_carry")),
    row!(["v_sub_co_ci_u32", "v_subb_co_u32"], WORDS, B32, carry!(|a, b, _, bit, _| with_borrow(a, b, bit)), Llvm("usubo_carry")),
    row!(["v_subrev_co_ci_u32", "v_subbrev_co_u32"], WORDS, B32, carry!(|a, b, _, bit, _| with_borrow(b, a, bit)), Llvm("usubo_carry")),
    row!(["v_cndmask_b32"], [F32; 3], B32, carry!(|a, b, _, bit, _| (if bit { b } else { a }, false)), Llvm("select")),
    row!(["v_cndmask_b16"], [F16; 3], B16, carry!(|a, b, _, bit, _| (if bit { b } else { a }, false)), Llvm("select")),
    row!(["v_add3_u32"], WORDS, B32, narrow!(|a, b, c, _| a.wrapping_add(b).wrapping_add(c)), Llvm("add (add)")),
    row!(["v_lshl_add_u32"], WORDS, B32, narrow!(|a, b, c, _| (a << (b & 31)).wrapping_add(c)), Llvm("add (shl)")),
    row!(["v_add_lshl_u32"], WORDS, B32, narrow!(|a, b, c, _| a.wrapping_add(b) << (c & 31)), Llvm("shl (add)")),
    row!(["v_lshl_or_b32"], WORDS, B32, narrow!(|a, b, c, _| a << (b & 31) | c), Llvm("or (shl)")),
    row!(["v_xad_u32"], WORDS, B32, narrow!(|a, b, c, _| (a ^ b).wrapping_add(c)), Llvm("add (xor)")),
    row!(["v_lshlrev_b32"], WORDS, B32, narrow!(|a, b, _, _| b << (a & 31)), Llvm("shl")),
    row!(["v_lshrrev_b32"], WORDS, B32, narrow!(|a, b, _, _| b >> (a & 31)), Llvm("srl")),
    row!(["v_ashrrev_i32"], WORDS, B32, narrow!(|a, b, _, _| (b as i32 >> (a & 31)) as u32), Llvm("sra")),
    row!(["v_lshlrev_b16"], HALVES, B16, narrow!(|a, b, _, _| (low_u16(b) << (a & 15)).into()), Llvm("shl")),
    row!(["v_lshrrev_b16"], HALVES, B16, narrow!(|a, b, _, _| (low_u16(b) >> (a & 15)).into()), Llvm("srl")),
    row!(["v_ashrrev_i16"], HALVES, B16, narrow!(|a, b, _, _| (sign_extend16(b) >> (a & 15)) as u32), Llvm("sra")),

    row!(["v_mul_lo_u32", "v_mul_lo_i32"], WORDS, B32, narrow!(|a, b, _, _| a.wrapping_mul(b)), Llvm("mul")),
    row!(["v_mul_hi_u32"], WORDS, B32, narrow!(|a, b, _, _| ((u64::from(a) * u64::from(b)) >> 32) as u32), Llvm("mulhu")),
    row!(["v_mul_hi_i32"], WORDS, B32,
        narrow!(|a, b, _, _| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32), Llvm("mulhs")),
    row!(["v_mul_u32_u24"], WORDS, B32, narrow!(|a, b, _, _| zero_extend24(a).wrapping_mul(zero_extend24(b))), Llvm("AMDGPUmul_u24")),
    row!(["v_mul_i32_i24"], WORDS, B32, narrow!(|a, b, _, _| sign_extend24(a).wrapping_mul(sign_extend24(b)) as u32), Llvm("AMDGPUmul_i24")),
    row!(["v_mul_hi_u32_u24"], WORDS, B32,
        narrow!(|a, b, _, _| ((u64::from(zero_extend24(a)) * u64::from(zero_extend24(b))) >> 32) as u32), Llvm("AMDGPUmulhi_u24")),
    row!(["v_mul_hi_i32_i24"], WORDS, B32,
        narrow!(|a, b, _, _| ((i64::from(sign_extend24(a)) * i64::from(sign_extend24(b))) >> 32) as u32), Llvm("AMDGPUmulhi_i24")),
    row!(["v_mad_u32_u24"], WORDS, B32,
        narrow!(|a, b, c, _| zero_extend24(a).wrapping_mul(zero_extend24(b)).wrapping_add(c)), Llvm("AMDGPUmad_u24")),
    row!(["v_mad_i32_i24"], WORDS, B32,
        narrow!(|a, b, c, _| (sign_extend24(a).wrapping_mul(sign_extend24(b)) as u32).wrapping_add(c)), Llvm("AMDGPUmad_i24")),
    row!(["v_mad_u32"], WORDS, B32, narrow!(|a, b, c, _| a.wrapping_mul(b).wrapping_add(c)), Llvm("add (mul)")),
    row!(["v_mad_u32_u16"], [B16, B16, B32], B32,
        narrow!(|a, b, c, _| u32::from(low_u16(a)).wrapping_mul(low_u16(b).into()).wrapping_add(c)), Document("multiply of 16 bits, add of 32")),
    row!(["v_mad_i32_i16"], [B16, B16, B32], B32,
        narrow!(|a, b, c, _| (sign_extend16(a).wrapping_mul(sign_extend16(b)) as u32).wrapping_add(c)), Document("multiply of 16 bits, add of 32")),

    row!(["v_add_nc_u16", "v_add_u16"], HALVES, B16, narrow!(|a, b, _, _| low_u16(a).wrapping_add(low_u16(b)).into()), Llvm("add"))
        .with_clamp(narrow!(|a, b, _, _| low_u16(a).saturating_add(low_u16(b)).into())),
    row!(["v_sub_nc_u16", "v_sub_u16"], HALVES, B16, narrow!(|a, b, _, _| low_u16(a).wrapping_sub(low_u16(b)).into()), Llvm("sub"))
        .with_clamp(narrow!(|a, b, _, _| low_u16(a).saturating_sub(low_u16(b)).into())),
    row!(["v_subrev_u16"], HALVES, B16, narrow!(|a, b, _, _| low_u16(b).wrapping_sub(low_u16(a)).into()), Llvm("sub"))
        .with_clamp(narrow!(|a, b, _, _| low_u16(b).saturating_sub(low_u16(a)).into())),
    row!(["v_add_nc_i16", "v_add_i16"], HALVES, B16, narrow!(|a, b, _, _| low_u16(a).wrapping_add(low_u16(b)).into()), Llvm("add"))
        .with_clamp(narrow!(|a, b, _, _| (a as i16).saturating_add(b as i16) as u16 as u32)),
    row!(["v_sub_nc_i16", "v_sub_i16"], HALVES, B16, narrow!(|a, b, _, _| low_u16(a).wrapping_sub(low_u16(b)).into()), Llvm("sub"))
        .with_clamp(narrow!(|a, b, _, _| (a as i16).saturating_sub(b as i16) as u16 as u32)),
    row!(["v_mul_lo_u16"], HALVES, B16, narrow!(|a, b, _, _| low_u16(a).wrapping_mul(low_u16(b)).into()), Llvm("mul")),
    row!(["v_mad_u16", "v_mad_legacy_u16"], HALVES, B16,
        narrow!(|a, b, c, _| low_u16(a).wrapping_mul(low_u16(b)).wrapping_add(low_u16(c)).into()), Llvm("add (mul)")),
    row!(["v_mad_i16", "v_mad_legacy_i16"], HALVES, B16,
        narrow!(|a, b, c, _| low_u16(a).wrapping_mul(low_u16(b)).wrapping_add(low_u16(c)).into()), Llvm("add (mul)")),

    row!(["v_min_u32"], WORDS, B32, narrow!(|a, b, _, _| a.min(b)), Llvm("umin")),
    row!(["v_max_u32"], WORDS, B32, narrow!(|a, b, _, _| a.max(b)), Llvm("umax")),
    row!(["v_min_i32"], WORDS, B32, narrow!(|a, b, _, _| (a as i32).min(b as i32) as u32), Llvm("smin")),
    row!(["v_max_i32"], WORDS, B32, narrow!(|a, b, _, _| (a as i32).max(b as i32) as u32), Llvm("smax")),
    row!(["v_min_u16"], HALVES, B16, narrow!(|a, b, _, _| low_u16(a).min(low_u16(b)).into()), Llvm("umin")),
    row!(["v_max_u16"], HALVES, B16, narrow!(|a, b, _, _| low_u16(a).max(low_u16(b)).into()), Llvm("umax")),
    row!(["v_min_i16"], HALVES, B16, narrow!(|a, b, _, _| sign_extend16(a).min(sign_extend16(b)) as u32), Llvm("smin")),
    row!(["v_max_i16"], HALVES, B16, narrow!(|a, b, _, _| sign_extend16(a).max(sign_extend16(b)) as u32), Llvm("smax")),
    row!(["v_min3_u32"], WORDS, B32, narrow!(|a, b, c, _| a.min(b).min(c)), Llvm("umin (umin)")),
    row!(["v_max3_u32"], WORDS, B32, narrow!(|a, b, c, _| a.max(b).max(c)), Llvm("umax (umax)")),
    row!(["v_min3_i32"], WORDS, B32, narrow!(|a, b, c, _| (a as i32).min(b as i32).min(c as i32) as u32), Llvm("smin (smin)")),
    row!(["v_max3_i32"], WORDS, B32, narrow!(|a, b, c, _| (a as i32).max(b as i32).max(c as i32) as u32), Llvm("smax (smax)")),
    row!(["v_med3_u32"], WORDS, B32, narrow!(|a, b, c, _| median_of_three(a, b, c)), Llvm("AMDGPUumed3")),
    row!(["v_med3_i32"], WORDS, B32, narrow!(|a, b, c, _| median_of_three(a as i32, b as i32, c as i32) as u32), Llvm("AMDGPUsmed3")),
    row!(["v_min3_u16"], HALVES, B16, narrow!(|a, b, c, _| low_u16(a).min(low_u16(b)).min(low_u16(c)).into()), Llvm("umin (umin)")),
    row!(["v_max3_u16"], HALVES, B16, narrow!(|a, b, c, _| low_u16(a).max(low_u16(b)).max(low_u16(c)).into()), Llvm("umax (umax)")),
    row!(["v_min3_i16"], HALVES, B16, narrow!(|a, b, c, _| sign_extend16(a).min(sign_extend16(b)).min(sign_extend16(c)) as u32), Llvm("smin (smin)")),
    row!(["v_max3_i16"], HALVES, B16, narrow!(|a, b, c, _| sign_extend16(a).max(sign_extend16(b)).max(sign_extend16(c)) as u32), Llvm("smax (smax)")),
    row!(["v_med3_u16"], HALVES, B16, narrow!(|a, b, c, _| median_of_three(low_u16(a), low_u16(b), low_u16(c)).into()), Llvm("AMDGPUumed3")),
    row!(["v_med3_i16"], HALVES, B16, narrow!(|a, b, c, _| median_of_three(sign_extend16(a), sign_extend16(b), sign_extend16(c)) as u32), Llvm("AMDGPUsmed3")),
    row!(["v_maxmin_u32"], WORDS, B32, narrow!(|a, b, c, _| a.max(b).min(c)), Llvm("umin (umax)")),
    row!(["v_minmax_u32"], WORDS, B32, narrow!(|a, b, c, _| a.min(b).max(c)), Llvm("umax (umin)")),
    row!(["v_maxmin_i32"], WORDS, B32, narrow!(|a, b, c, _| (a as i32).max(b as i32).min(c as i32) as u32), Llvm("smin (smax)")),
    row!(["v_minmax_i32"], WORDS, B32, narrow!(|a, b, c, _| (a as i32).min(b as i32).max(c as i32) as u32), Llvm("smax (smin)")),
    row!(["v_add_max_u32"], WORDS, B32, narrow!(|a, b, c, _| a.wrapping_add(b).max(c)), Llvm("umax (add)")),
    row!(["v_add_min_u32"], WORDS, B32, narrow!(|a, b, c, _| a.wrapping_add(b).min(c)), Llvm("umin (add)")),
    row!(["v_add_max_i32"], WORDS, B32, narrow!(|a, b, c, _| (a.wrapping_add(b) as i32).max(c as i32) as u32), Llvm("smax (add)")),
    row!(["v_add_min_i32"], WORDS, B32, narrow!(|a, b, c, _| (a.wrapping_add(b) as i32).min(c as i32) as u32), Llvm("smin (add)")),

    row!(["v_alignbit_b32"], WORDS, B32,
        narrow!(|a, b, c, _| ((u64::from(a) << 32 | u64::from(b)) >> (c & 31)) as u32), Llvm("fshr")),
    row!(["v_alignbyte_b32"], WORDS, B32,
        narrow!(|a, b, c, _| ((u64::from(a) << 32 | u64::from(b)) >> (8 * (c & 3))) as u32), Llvm("int_amdgcn_alignbyte")),
    row!(["v_perm_b32"], WORDS, B32, narrow!(|a, b, c, _| permute_bytes(a, b, c)), Llvm("AMDGPUperm")),
    row!(["v_lerp_u8"], WORDS, B32, narrow!(|a, b, c, _| averaged_bytes(a, b, c)), Llvm("int_amdgcn_lerp")),
    row!(["v_sad_u8"], WORDS, B32, narrow!(|a, b, c, _| byte_differences(a, b, false).wrapping_add(c)), Llvm("int_amdgcn_sad_u8")),
    row!(["v_sad_hi_u8"], WORDS, B32, narrow!(|a, b, c, _| (byte_differences(a, b, false) << 16).wrapping_add(c)), Llvm("int_amdgcn_sad_hi_u8")),
    row!(["v_msad_u8"], WORDS, B32, narrow!(|a, b, c, _| byte_differences(a, b, true).wrapping_add(c)), Llvm("int_amdgcn_msad_u8")),
    row!(["v_sad_u16"], WORDS, B32,
        narrow!(|a, b, c, _| (a & 0xffff).abs_diff(b & 0xffff).wrapping_add((a >> 16).abs_diff(b >> 16)).wrapping_add(c)), Llvm("int_amdgcn_sad_u16")),
    row!(["v_sad_u32"], WORDS, B32, narrow!(|a, b, c, _| a.abs_diff(b).wrapping_add(c)), Llvm("add (absdiff)")),
    row!(["v_pack_b32_f16"], [F16; 3], B32, narrow!(|a, b, _, _| a & 0xffff | b << 16), Llvm("build_vector")),
    row!(["v_sat_pk_u8_i16"], WORDS, B16,
        narrow!(|a, _, _, _| saturated_u8(sign_extend16(a)) | saturated_u8(sign_extend16(a >> 16)) << 8), Llvm("AMDGPUSatPkCast")),
    row!(["v_cvt_i32_i16"], HALVES, B32, narrow!(|a, _, _, _| sign_extend16(a) as u32), Llvm("sext")),
    row!(["v_cvt_u32_u16"], HALVES, B32, narrow!(|a, _, _, _| a & 0xffff), Llvm("zext")),
    row!(["v_cvt_pk_u16_u32"], WORDS, B32, narrow!(|a, b, _, _| a.min(0xffff) | b.min(0xffff) << 16), Llvm("int_amdgcn_cvt_pk_u16")),
    row!(["v_cvt_pk_i16_i32"], WORDS, B32,
        narrow!(|a, b, _, _| saturated_i16(a) | saturated_i16(b) << 16), Llvm("int_amdgcn_cvt_pk_i16")),
];

/// Half of a dual instruction: two sources combined by a truth table, the third source, as if there were a third of 0.
pub const TWO_SOURCE_TABLE: VectorRow = VectorRow::new(
    &["v_bitop2_b32"],
    WORDS,
    B32,
    narrow!(|a, b, c, _| combine_bits(a, b, 0, c)),
    Llvm("BITOP3_32 with two sources"),
);

#[inline]
fn saturated_i16(value: u32) -> u32 {
    u32::from((value as i32).clamp(-32768, 32767) as u16)
}

/// `width` bits of `value` from `offset`, with their sign.
#[inline]
fn signed_bit_field(value: u32, offset: u32, width: u32) -> u32 {
    if width == 0 {
        return 0;
    }
    if offset + width >= 32 {
        return (value as i32 >> offset) as u32;
    }
    ((value << (32 - offset - width)) as i32 >> (32 - width)) as u32
}

#[inline]
pub(crate) fn with_carry(a: u32, b: u32, bit: bool) -> (u32, bool) {
    let sum = u64::from(a) + u64::from(b) + u64::from(bit);
    (sum as u32, sum >> 32 != 0)
}

#[inline]
pub(crate) fn with_borrow(a: u32, b: u32, bit: bool) -> (u32, bool) {
    let difference = u64::from(a).wrapping_sub(u64::from(b)).wrapping_sub(u64::from(bit));
    (difference as u32, difference >> 32 != 0)
}
