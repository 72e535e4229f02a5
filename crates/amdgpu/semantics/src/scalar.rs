//! Scalar instructions that compute a value or a condition.

use crate::convert::{f32_to_f16, packed_to_zero};
use crate::float::f16_to_f32;
use crate::half;
use crate::integer::{with_borrow, with_carry};
use crate::lanes::{LANES, LaneFunction, Lanes, VectorRow};
use crate::mode::FloatMode;
use crate::source::MeaningSource::{self, Document, Llvm};

/// The sources of a scalar instruction.
#[derive(Debug, Clone, Copy)]
pub struct ScalarInput {
    /// First source.
    pub a: u64,
    /// Second source; the immediate of SOPK, which has its sign.
    pub b: u64,
    /// Third source, or the old value of the destination.
    pub c: u64,
    /// The condition code SCC before the instruction.
    pub scc: bool,
    pub mode: FloatMode,
}

/// The result and the new condition code.
pub type ScalarFunction = fn(ScalarInput) -> (u64, bool);

/// The place of the result of a scalar instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarUse {
    /// It is the destination, of this many bits.
    Value(u32),
    /// There is only the condition code.
    Condition,
    /// It is EXEC; the destination gets the old one. The second source is EXEC.
    SaveExec,
    /// It is EXEC and the destination.
    WriteExec,
}

#[derive(Debug, Clone, Copy)]
pub struct ScalarRow {
    pub names: &'static [&'static str],
    /// Bits of its sources.
    pub bits: u32,
    pub result: ScalarUse,
    pub function: ScalarFunction,
    /// Where the meaning is from.
    pub evidence: MeaningSource,
}

fn low_word(value: u64) -> u32 {
    value as u32
}

fn signed_word(value: u64) -> i32 {
    value as u32 as i32
}

/// A result of 32 bits with a condition that says that it is not 0.
fn not_zero(value: u32) -> (u64, bool) {
    (value.into(), value != 0)
}

fn not_zero64(value: u64) -> (u64, bool) {
    (value, value != 0)
}

fn add_signed(a: u64, b: u64) -> (u64, bool) {
    let (sum, overflow) = signed_word(a).overflowing_add(signed_word(b));
    ((sum as u32).into(), overflow)
}

fn subtract_signed(a: u64, b: u64) -> (u64, bool) {
    let (difference, overflow) = signed_word(a).overflowing_sub(signed_word(b));
    ((difference as u32).into(), overflow)
}

/// A pair of a 32-bit value and a bit as a result.
fn value_and_bit((value, bit): (u32, bool)) -> (u64, bool) {
    (value.into(), bit)
}

fn shifted_sum(a: u64, b: u64, shift: u32) -> (u64, bool) {
    let sum = (u64::from(low_word(a)) << shift) + u64::from(low_word(b));
    (sum & 0xffff_ffff, sum >> 32 != 0)
}

/// Offset and width of a bit field in the second source.
fn bit_field(b: u64) -> (u32, u32) {
    (low_word(b) & 63, low_word(b) >> 16 & 127)
}

fn extract_unsigned(a: u64, b: u64, bits: u32) -> u64 {
    let (offset, width) = bit_field(b);
    let offset = offset & (bits - 1);
    let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    (a & (u64::MAX >> (64 - bits))) >> offset & mask
}

fn extract_signed(a: u64, b: u64, bits: u32) -> u64 {
    let (offset, width) = bit_field(b);
    let offset = offset & (bits - 1);
    if width == 0 {
        return 0;
    }
    let value = if bits == 32 { i64::from(signed_word(a)) } else { a as i64 };
    let drop = 64_u32.saturating_sub(width + offset).min(63);
    let result = if width + offset >= bits { value >> offset } else { value << drop >> (drop + offset) };
    if bits == 32 { u64::from(result as u32) } else { result as u64 }
}

/// Position of the first bit from the top that differs from the sign; -1 if none does.
fn leading_sign(value: u64, bits: u32) -> u64 {
    let shifted = value << (64 - bits);
    let sign = ((shifted as i64) >> 63) as u64;
    let count = ((shifted ^ sign) >> (64 - bits)).leading_zeros() - (64 - bits);
    u64::from(if count >= bits { u32::MAX } else { count })
}

fn found_position(found: u32, bits: u32) -> (u64, bool) {
    (u64::from(if found >= bits { u32::MAX } else { found }), false)
}

/// Every group of four bits: all set if one is.
fn whole_quad(a: u64) -> u64 {
    let any = (a | a >> 1 | a >> 2 | a >> 3) & 0x1111_1111_1111_1111;
    any * 15
}

/// One bit for each group of four: whether one is set.
fn quad_mask(a: u64) -> u64 {
    (0..16).fold(0, |mask, quad| mask | u64::from(a >> (4 * quad) & 15 != 0) << quad)
}

fn replicate_bits(a: u64) -> u64 {
    (0..32).fold(0, |result, bit| result | ((a >> bit & 1) * 3) << (2 * bit))
}

fn pack_halves(low_half: u64, high_half: u64) -> (u64, bool) {
    (low_half & 0xffff | (high_half & 0xffff) << 16, false)
}

/// The function of the vector instruction `names` for one lane.
fn apply_vector_row(rows: &[VectorRow], name: &str, input: ScalarInput) -> (u64, bool) {
    let Some(row) = rows.iter().find(|row| row.names.contains(&name)) else { return (0, input.scc) };
    let LaneFunction::Narrow(function) = row.function else { return (0, input.scc) };
    let lanes: [Lanes; 3] = [input.a, input.b, input.c].map(|value| [value as u32; LANES]);
    let mut out = [0; LANES];
    function(&mut out, &[&lanes[0], &lanes[1], &lanes[2]], input.mode);
    (out[0].into(), input.scc)
}

/// Whether the outcome of a comparison is in a set: bit 0 less, 1 equal, 2 greater, 3 unordered.
fn outcome_holds(x: f32, y: f32, outcomes: u8) -> bool {
    let outcome = match x.partial_cmp(&y) {
        Some(std::cmp::Ordering::Less) => 1,
        Some(std::cmp::Ordering::Equal) => 2,
        Some(std::cmp::Ordering::Greater) => 4,
        None => 8,
    };
    outcomes & outcome != 0
}

fn f32_source(value: u64, mode: FloatMode) -> f32 {
    mode.flush_source32(f32::from_bits(low_word(value)))
}

fn half_of(value: u64, mode: FloatMode) -> f32 {
    f16_to_f32(mode.flush_source16(value as u16))
}

macro_rules! value {
    ($bits:literal, [$($name:literal),+], |$i:pat_param| $body:expr, $evidence:expr) => {
        ScalarRow { names: &[$($name),+], bits: $bits, result: ScalarUse::Value($bits), function: |$i| $body, evidence: $evidence }
    };
    ($bits:literal => $result:literal, [$($name:literal),+], |$i:pat_param| $body:expr, $evidence:expr) => {
        ScalarRow { names: &[$($name),+], bits: $bits, result: ScalarUse::Value($result), function: |$i| $body, evidence: $evidence }
    };
}

/// A row that keeps the condition code.
macro_rules! keep {
    ($bits:literal, [$($name:literal),+], |$i:ident| $body:expr, $evidence:expr) => {
        value!($bits, [$($name),+], |$i| ($body, $i.scc), $evidence)
    };
    ($bits:literal => $result:literal, [$($name:literal),+], |$i:ident| $body:expr, $evidence:expr) => {
        value!($bits => $result, [$($name),+], |$i| ($body, $i.scc), $evidence)
    };
}

macro_rules! condition {
    ($bits:literal, [$($name:literal),+], |$i:ident| $body:expr) => {
        ScalarRow {
            names: &[$($name),+], bits: $bits, result: ScalarUse::Condition, function: |$i| (0, $body), evidence: Llvm("setcc"),
        }
    };
}

macro_rules! exec {
    ($result:ident, $bits:literal, [$($name:literal),+], |$i:ident| $body:expr) => {
        ScalarRow {
            names: &[$($name),+], bits: $bits, result: ScalarUse::$result,
            function: |$i| { let result: u64 = $body & (u64::MAX >> (64 - $bits)); (result, result != 0) },
            evidence: Document("changes of EXEC"),
        }
    };
}

/// A bit operation in both widths.
macro_rules! bits {
    ($narrow:literal, $wide:literal, $narrow_new:literal, $wide_new:literal, |$i:ident| $body:expr, $evidence:expr) => {
        [
            value!(32, [$narrow, $narrow_new], |$i| not_zero(low_word($body)), $evidence),
            value!(64, [$wide, $wide_new], |$i| not_zero64($body), $evidence),
        ]
    };
}

const NOT1_AND: [ScalarRow; 2] =
    bits!("s_andn2_b32", "s_andn2_b64", "s_and_not1_b32", "s_and_not1_b64", |i| i.a & !i.b, Llvm("and (not)"));
const NOT1_OR: [ScalarRow; 2] =
    bits!("s_orn2_b32", "s_orn2_b64", "s_or_not1_b32", "s_or_not1_b64", |i| i.a | !i.b, Llvm("or (not)"));

macro_rules! float {
    ([$($name:literal),+], $rows:path, $vector:literal) => {
        value!(32, [$($name),+], |i| apply_vector_row($rows, $vector, i), Llvm("the vector instruction"))
    };
}

macro_rules! compare_floats {
    ($single:literal, $half:literal, $outcomes:literal) => {
        [
            ScalarRow {
                names: &[$single],
                bits: 32,
                result: ScalarUse::Condition,
                evidence: Llvm("setcc"),
                function: |i| (0, outcome_holds(f32_source(i.a, i.mode), f32_source(i.b, i.mode), $outcomes)),
            },
            ScalarRow {
                names: &[$half],
                bits: 32,
                result: ScalarUse::Condition,
                evidence: Llvm("setcc"),
                function: |i| (0, outcome_holds(half_of(i.a, i.mode), half_of(i.b, i.mode), $outcomes)),
            },
        ]
    };
}

#[rustfmt::skip]
const FLOAT_CONDITIONS: [[ScalarRow; 2]; 14] = [
    compare_floats!("s_cmp_lt_f32", "s_cmp_lt_f16", 1),
    compare_floats!("s_cmp_eq_f32", "s_cmp_eq_f16", 2),
    compare_floats!("s_cmp_le_f32", "s_cmp_le_f16", 3),
    compare_floats!("s_cmp_gt_f32", "s_cmp_gt_f16", 4),
    compare_floats!("s_cmp_lg_f32", "s_cmp_lg_f16", 5),
    compare_floats!("s_cmp_ge_f32", "s_cmp_ge_f16", 6),
    compare_floats!("s_cmp_o_f32", "s_cmp_o_f16", 7),
    compare_floats!("s_cmp_u_f32", "s_cmp_u_f16", 8),
    compare_floats!("s_cmp_nge_f32", "s_cmp_nge_f16", 9),
    compare_floats!("s_cmp_nlg_f32", "s_cmp_nlg_f16", 10),
    compare_floats!("s_cmp_ngt_f32", "s_cmp_ngt_f16", 11),
    compare_floats!("s_cmp_nle_f32", "s_cmp_nle_f16", 12),
    compare_floats!("s_cmp_neq_f32", "s_cmp_neq_f16", 13),
    compare_floats!("s_cmp_nlt_f32", "s_cmp_nlt_f16", 14),
];

#[rustfmt::skip]
pub(crate) const ROWS: &[ScalarRow] = &[
    keep!(32, ["s_mov_b32", "s_movk_i32"], |i| i.a, Llvm("copy")),
    keep!(64, ["s_mov_b64"], |i| i.a, Llvm("copy")),
    keep!(32, ["s_cmov_b32", "s_cmovk_i32"], |i| if i.scc { i.a } else { i.c }, Llvm("select")),
    keep!(64, ["s_cmov_b64"], |i| if i.scc { i.a } else { i.c }, Llvm("select")),
    keep!(32, ["s_cselect_b32"], |i| if i.scc { i.a } else { i.b }, Llvm("select")),
    keep!(64, ["s_cselect_b64"], |i| if i.scc { i.a } else { i.b }, Llvm("select")),
    value!(32, ["s_not_b32"], |i| not_zero(!low_word(i.a)), Llvm("not")),
    value!(64, ["s_not_b64"], |i| not_zero64(!i.a), Llvm("not")),
    value!(32, ["s_and_b32"], |i| not_zero(low_word(i.a & i.b)), Llvm("and")),
    value!(64, ["s_and_b64"], |i| not_zero64(i.a & i.b), Llvm("and")),
    value!(32, ["s_or_b32"], |i| not_zero(low_word(i.a | i.b)), Llvm("or")),
    value!(64, ["s_or_b64"], |i| not_zero64(i.a | i.b), Llvm("or")),
    value!(32, ["s_xor_b32"], |i| not_zero(low_word(i.a ^ i.b)), Llvm("xor")),
    value!(64, ["s_xor_b64"], |i| not_zero64(i.a ^ i.b), Llvm("xor")),
    value!(32, ["s_nand_b32"], |i| not_zero(!low_word(i.a & i.b)), Llvm("not (and)")),
    value!(64, ["s_nand_b64"], |i| not_zero64(!(i.a & i.b)), Llvm("not (and)")),
    value!(32, ["s_nor_b32"], |i| not_zero(!low_word(i.a | i.b)), Llvm("not (or)")),
    value!(64, ["s_nor_b64"], |i| not_zero64(!(i.a | i.b)), Llvm("not (or)")),
    value!(32, ["s_xnor_b32"], |i| not_zero(!low_word(i.a ^ i.b)), Llvm("not (xor)")),
    value!(64, ["s_xnor_b64"], |i| not_zero64(!(i.a ^ i.b)), Llvm("not (xor)")),
    NOT1_AND[0], NOT1_AND[1], NOT1_OR[0], NOT1_OR[1],

    value!(32, ["s_add_u32", "s_add_co_u32"], |i| value_and_bit(low_word(i.a).overflowing_add(low_word(i.b))), Llvm("uaddo")),
    value!(32, ["s_sub_u32", "s_sub_co_u32"], |i| value_and_bit(low_word(i.a).overflowing_sub(low_word(i.b))), Llvm("usubo")),
    value!(32, ["s_addc_u32", "s_add_co_ci_u32"], |i| value_and_bit(with_carry(low_word(i.a), low_word(i.b), i.scc)), Llvm("uaddo_carry")),
    value!(32, ["s_subb_u32", "s_sub_co_ci_u32"], |i| value_and_bit(with_borrow(low_word(i.a), low_word(i.b), i.scc)), Llvm("usubo_carry")),
    value!(32, ["s_add_i32", "s_add_co_i32", "s_addk_i32", "s_addk_co_i32"], |i| add_signed(i.a, i.b), Llvm("saddo")),
    value!(32, ["s_sub_i32", "s_sub_co_i32"], |i| subtract_signed(i.a, i.b), Llvm("ssubo")),
    keep!(64, ["s_add_nc_u64"], |i| i.a.wrapping_add(i.b), Llvm("add")),
    keep!(64, ["s_sub_nc_u64"], |i| i.a.wrapping_sub(i.b), Llvm("sub")),
    keep!(32, ["s_mul_i32", "s_mulk_i32"], |i| low_word(i.a).wrapping_mul(low_word(i.b)).into(), Llvm("mul")),
    keep!(64, ["s_mul_u64"], |i| i.a.wrapping_mul(i.b), Llvm("mul")),
    keep!(32, ["s_mul_hi_u32"], |i| (u64::from(low_word(i.a)) * u64::from(low_word(i.b))) >> 32, Llvm("mulhu")),
    keep!(32, ["s_mul_hi_i32"], |i| ((i64::from(signed_word(i.a)) * i64::from(signed_word(i.b))) as u64) >> 32, Llvm("mulhs")),
    value!(32, ["s_lshl1_add_u32"], |i| shifted_sum(i.a, i.b, 1), Llvm("add (shl 1)")),
    value!(32, ["s_lshl2_add_u32"], |i| shifted_sum(i.a, i.b, 2), Llvm("add (shl 2)")),
    value!(32, ["s_lshl3_add_u32"], |i| shifted_sum(i.a, i.b, 3), Llvm("add (shl 3)")),
    value!(32, ["s_lshl4_add_u32"], |i| shifted_sum(i.a, i.b, 4), Llvm("add (shl 4)")),
    value!(32, ["s_abs_i32"], |i| not_zero(signed_word(i.a).unsigned_abs()), Llvm("abs")),
    value!(32, ["s_absdiff_i32"], |i| not_zero(signed_word(i.a).wrapping_sub(signed_word(i.b)).unsigned_abs()), Llvm("abs (sub)")),
    value!(32, ["s_min_i32"], |i| (signed_word(i.a).min(signed_word(i.b)) as u32 as u64, signed_word(i.a) < signed_word(i.b)), Llvm("smin")),
    value!(32, ["s_max_i32"], |i| (signed_word(i.a).max(signed_word(i.b)) as u32 as u64, signed_word(i.a) >= signed_word(i.b)), Llvm("smax")),
    value!(32, ["s_min_u32"], |i| (low_word(i.a).min(low_word(i.b)).into(), low_word(i.a) < low_word(i.b)), Llvm("umin")),
    value!(32, ["s_max_u32"], |i| (low_word(i.a).max(low_word(i.b)).into(), low_word(i.a) >= low_word(i.b)), Llvm("umax")),

    value!(32, ["s_lshl_b32"], |i| not_zero(low_word(i.a) << (i.b & 31)), Llvm("shl")),
    value!(64, ["s_lshl_b64"], |i| not_zero64(i.a << (i.b & 63)), Llvm("shl")),
    value!(32, ["s_lshr_b32"], |i| not_zero(low_word(i.a) >> (i.b & 31)), Llvm("srl")),
    value!(64, ["s_lshr_b64"], |i| not_zero64(i.a >> (i.b & 63)), Llvm("srl")),
    value!(32, ["s_ashr_i32"], |i| not_zero((signed_word(i.a) >> (i.b & 31)) as u32), Llvm("sra")),
    value!(64, ["s_ashr_i64"], |i| not_zero64((i.a as i64 >> (i.b & 63)) as u64), Llvm("sra")),
    keep!(32, ["s_bfm_b32"], |i| u64::from(((1_u32 << (i.a & 31)) - 1) << (i.b & 31)), Llvm("shl (sub (shl 1), 1)")),
    keep!(64, ["s_bfm_b64"], |i| ((1_u64 << (i.a & 63)) - 1) << (i.b & 63), Llvm("shl (sub (shl 1), 1)")),
    value!(32, ["s_bfe_u32"], |i| not_zero(low_word(extract_unsigned(i.a, i.b & !32, 32))), Llvm("AMDGPUbfe_u32")),
    value!(32, ["s_bfe_i32"], |i| not_zero(low_word(extract_signed(i.a, i.b & !32, 32))), Llvm("AMDGPUbfe_i32")),
    value!(64, ["s_bfe_u64"], |i| not_zero64(extract_unsigned(i.a, i.b, 64)), Llvm("and (srl)")),
    value!(64, ["s_bfe_i64"], |i| not_zero64(extract_signed(i.a, i.b, 64)), Llvm("sra (shl)")),
    keep!(32, ["s_brev_b32"], |i| low_word(i.a).reverse_bits().into(), Llvm("bitreverse")),
    keep!(64, ["s_brev_b64"], |i| i.a.reverse_bits(), Llvm("bitreverse")),
    value!(32, ["s_bcnt1_i32_b32"], |i| not_zero(low_word(i.a).count_ones()), Llvm("ctpop")),
    value!(64 => 32, ["s_bcnt1_i32_b64"], |i| not_zero(i.a.count_ones()), Llvm("ctpop")),
    value!(32, ["s_bcnt0_i32_b32"], |i| not_zero(low_word(i.a).count_zeros()), Llvm("ctpop (not)")),
    value!(64 => 32, ["s_bcnt0_i32_b64"], |i| not_zero(i.a.count_zeros()), Llvm("ctpop (not)")),
    keep!(32, ["s_ff1_i32_b32", "s_ctz_i32_b32"], |i| found_position(low_word(i.a).trailing_zeros(), 32).0, Llvm("AMDGPUffbl_b32")),
    keep!(64 => 32, ["s_ff1_i32_b64", "s_ctz_i32_b64"], |i| found_position(i.a.trailing_zeros(), 64).0, Llvm("cttz")),
    keep!(32, ["s_ff0_i32_b32"], |i| found_position(low_word(i.a).trailing_ones(), 32).0, Llvm("cttz (not)")),
    keep!(64 => 32, ["s_ff0_i32_b64"], |i| found_position(i.a.trailing_ones(), 64).0, Llvm("cttz (not)")),
    keep!(32, ["s_flbit_i32_b32", "s_clz_i32_u32"], |i| found_position(low_word(i.a).leading_zeros(), 32).0, Llvm("AMDGPUffbh_u32")),
    keep!(64 => 32, ["s_flbit_i32_b64", "s_clz_i32_u64"], |i| found_position(i.a.leading_zeros(), 64).0, Llvm("ctlz")),
    keep!(32, ["s_flbit_i32", "s_cls_i32"], |i| leading_sign(i.a, 32), Llvm("int_amdgcn_sffbh")),
    keep!(64 => 32, ["s_flbit_i32_i64", "s_cls_i32_i64"], |i| leading_sign(i.a, 64), Llvm("int_amdgcn_sffbh")),
    keep!(32, ["s_sext_i32_i8"], |i| i.a as i8 as u32 as u64, Llvm("sext_inreg")),
    keep!(32, ["s_sext_i32_i16"], |i| i.a as i16 as u32 as u64, Llvm("sext_inreg")),
    keep!(32, ["s_bitset0_b32"], |i| i.c & !(1 << (i.a & 31)), Llvm("and (not (shl 1))")),
    keep!(32, ["s_bitset1_b32"], |i| i.c | 1 << (i.a & 31), Llvm("or (shl 1)")),
    keep!(64, ["s_bitset0_b64"], |i| i.c & !(1 << (i.a & 63)), Llvm("and (not (shl 1))")),
    keep!(64, ["s_bitset1_b64"], |i| i.c | 1 << (i.a & 63), Llvm("or (shl 1)")),
    keep!(32 => 64, ["s_bitreplicate_b64_b32"], |i| replicate_bits(i.a), Llvm("int_amdgcn_s_bitreplicate")),
    value!(32, ["s_wqm_b32"], |i| not_zero(low_word(whole_quad(i.a & 0xffff_ffff))), Llvm("int_amdgcn_s_wqm")),
    value!(64, ["s_wqm_b64"], |i| not_zero64(whole_quad(i.a)), Llvm("int_amdgcn_s_wqm")),
    value!(32, ["s_quadmask_b32"], |i| not_zero(low_word(quad_mask(i.a & 0xffff_ffff))), Llvm("int_amdgcn_s_quadmask")),
    value!(64, ["s_quadmask_b64"], |i| not_zero64(quad_mask(i.a)), Llvm("int_amdgcn_s_quadmask")),
    keep!(32, ["s_pack_ll_b32_b16"], |i| pack_halves(i.a, i.b).0, Llvm("build_vector")),
    keep!(32, ["s_pack_lh_b32_b16"], |i| pack_halves(i.a, i.b >> 16).0, Llvm("build_vector")),
    keep!(32, ["s_pack_hh_b32_b16"], |i| pack_halves(i.a >> 16, i.b >> 16).0, Llvm("build_vector")),
    keep!(32, ["s_pack_hl_b32_b16"], |i| pack_halves(i.a >> 16, i.b).0, Llvm("build_vector")),

    condition!(32, ["s_cmp_eq_i32", "s_cmpk_eq_i32", "s_cmp_eq_u32"], |i| low_word(i.a) == low_word(i.b)),
    condition!(32, ["s_cmp_lg_i32", "s_cmpk_lg_i32", "s_cmp_lg_u32"], |i| low_word(i.a) != low_word(i.b)),
    condition!(32, ["s_cmp_gt_i32", "s_cmpk_gt_i32"], |i| signed_word(i.a) > signed_word(i.b)),
    condition!(32, ["s_cmp_ge_i32", "s_cmpk_ge_i32"], |i| signed_word(i.a) >= signed_word(i.b)),
    condition!(32, ["s_cmp_lt_i32", "s_cmpk_lt_i32"], |i| signed_word(i.a) < signed_word(i.b)),
    condition!(32, ["s_cmp_le_i32", "s_cmpk_le_i32"], |i| signed_word(i.a) <= signed_word(i.b)),
    condition!(32, ["s_cmp_gt_u32"], |i| low_word(i.a) > low_word(i.b)),
    condition!(32, ["s_cmp_ge_u32"], |i| low_word(i.a) >= low_word(i.b)),
    condition!(32, ["s_cmp_lt_u32"], |i| low_word(i.a) < low_word(i.b)),
    condition!(32, ["s_cmp_le_u32"], |i| low_word(i.a) <= low_word(i.b)),
    condition!(32, ["s_cmpk_eq_u32"], |i| low_word(i.a) == low_word(i.b) & 0xffff),
    condition!(32, ["s_cmpk_lg_u32"], |i| low_word(i.a) != low_word(i.b) & 0xffff),
    condition!(32, ["s_cmpk_gt_u32"], |i| low_word(i.a) > low_word(i.b) & 0xffff),
    condition!(32, ["s_cmpk_ge_u32"], |i| low_word(i.a) >= low_word(i.b) & 0xffff),
    condition!(32, ["s_cmpk_lt_u32"], |i| low_word(i.a) < low_word(i.b) & 0xffff),
    condition!(32, ["s_cmpk_le_u32"], |i| low_word(i.a) <= low_word(i.b) & 0xffff),
    condition!(64, ["s_cmp_eq_u64"], |i| i.a == i.b),
    condition!(64, ["s_cmp_lg_u64"], |i| i.a != i.b),
    condition!(32, ["s_bitcmp0_b32"], |i| i.a >> (i.b & 31) & 1 == 0),
    condition!(32, ["s_bitcmp1_b32"], |i| i.a >> (i.b & 31) & 1 == 1),
    condition!(64, ["s_bitcmp0_b64"], |i| i.a >> (i.b & 63) & 1 == 0),
    condition!(64, ["s_bitcmp1_b64"], |i| i.a >> (i.b & 63) & 1 == 1),

    exec!(SaveExec, 32, ["s_and_saveexec_b32"], |i| i.a & i.b),
    exec!(SaveExec, 64, ["s_and_saveexec_b64"], |i| i.a & i.b),
    exec!(SaveExec, 32, ["s_or_saveexec_b32"], |i| i.a | i.b),
    exec!(SaveExec, 64, ["s_or_saveexec_b64"], |i| i.a | i.b),
    exec!(SaveExec, 32, ["s_xor_saveexec_b32"], |i| i.a ^ i.b),
    exec!(SaveExec, 64, ["s_xor_saveexec_b64"], |i| i.a ^ i.b),
    exec!(SaveExec, 32, ["s_nand_saveexec_b32"], |i| !(i.a & i.b)),
    exec!(SaveExec, 64, ["s_nand_saveexec_b64"], |i| !(i.a & i.b)),
    exec!(SaveExec, 32, ["s_nor_saveexec_b32"], |i| !(i.a | i.b)),
    exec!(SaveExec, 64, ["s_nor_saveexec_b64"], |i| !(i.a | i.b)),
    exec!(SaveExec, 32, ["s_xnor_saveexec_b32"], |i| !(i.a ^ i.b)),
    exec!(SaveExec, 64, ["s_xnor_saveexec_b64"], |i| !(i.a ^ i.b)),
    exec!(SaveExec, 32, ["s_andn1_saveexec_b32", "s_and_not0_saveexec_b32"], |i| !i.a & i.b),
    exec!(SaveExec, 64, ["s_andn1_saveexec_b64", "s_and_not0_saveexec_b64"], |i| !i.a & i.b),
    exec!(SaveExec, 32, ["s_andn2_saveexec_b32", "s_and_not1_saveexec_b32"], |i| i.a & !i.b),
    exec!(SaveExec, 64, ["s_andn2_saveexec_b64", "s_and_not1_saveexec_b64"], |i| i.a & !i.b),
    exec!(SaveExec, 32, ["s_orn1_saveexec_b32", "s_or_not0_saveexec_b32"], |i| !i.a | i.b),
    exec!(SaveExec, 64, ["s_orn1_saveexec_b64", "s_or_not0_saveexec_b64"], |i| !i.a | i.b),
    exec!(SaveExec, 32, ["s_orn2_saveexec_b32", "s_or_not1_saveexec_b32"], |i| i.a | !i.b),
    exec!(SaveExec, 64, ["s_orn2_saveexec_b64", "s_or_not1_saveexec_b64"], |i| i.a | !i.b),
    exec!(WriteExec, 32, ["s_andn1_wrexec_b32", "s_and_not0_wrexec_b32"], |i| !i.a & i.b),
    exec!(WriteExec, 64, ["s_andn1_wrexec_b64", "s_and_not0_wrexec_b64"], |i| !i.a & i.b),
    exec!(WriteExec, 32, ["s_andn2_wrexec_b32", "s_and_not1_wrexec_b32"], |i| i.a & !i.b),
    exec!(WriteExec, 64, ["s_andn2_wrexec_b64", "s_and_not1_wrexec_b64"], |i| i.a & !i.b),

    float!(["s_add_f32"], crate::single::ROWS, "v_add_f32"),
    float!(["s_sub_f32"], crate::single::ROWS, "v_sub_f32"),
    float!(["s_mul_f32"], crate::single::ROWS, "v_mul_f32"),
    float!(["s_fmac_f32", "s_fmaak_f32", "s_fmamk_f32"], crate::single::ROWS, "v_fma_f32"),
    float!(["s_min_f32", "s_min_num_f32"], crate::single::ROWS, "v_min_f32"),
    float!(["s_max_f32", "s_max_num_f32"], crate::single::ROWS, "v_max_f32"),
    float!(["s_minimum_f32"], crate::single::ROWS, "v_minimum_f32"),
    float!(["s_maximum_f32"], crate::single::ROWS, "v_maximum_f32"),
    float!(["s_floor_f32"], crate::single::ROWS, "v_floor_f32"),
    float!(["s_ceil_f32"], crate::single::ROWS, "v_ceil_f32"),
    float!(["s_trunc_f32"], crate::single::ROWS, "v_trunc_f32"),
    float!(["s_rndne_f32"], crate::single::ROWS, "v_rndne_f32"),
    float!(["s_add_f16"], half::ROWS, "v_add_f16"),
    float!(["s_sub_f16"], half::ROWS, "v_sub_f16"),
    float!(["s_mul_f16"], half::ROWS, "v_mul_f16"),
    float!(["s_fmac_f16"], half::ROWS, "v_fma_f16"),
    float!(["s_min_f16", "s_min_num_f16"], half::ROWS, "v_min_f16"),
    float!(["s_max_f16", "s_max_num_f16"], half::ROWS, "v_max_f16"),
    float!(["s_minimum_f16"], half::ROWS, "v_minimum_f16"),
    float!(["s_maximum_f16"], half::ROWS, "v_maximum_f16"),
    float!(["s_floor_f16"], half::ROWS, "v_floor_f16"),
    float!(["s_ceil_f16"], half::ROWS, "v_ceil_f16"),
    float!(["s_trunc_f16"], half::ROWS, "v_trunc_f16"),
    float!(["s_rndne_f16"], half::ROWS, "v_rndne_f16"),
    keep!(32, ["s_cvt_f32_i32"], |i| (signed_word(i.a) as f32).to_bits().into(), Llvm("sint_to_fp")),
    keep!(32, ["s_cvt_f32_u32"], |i| (low_word(i.a) as f32).to_bits().into(), Llvm("uint_to_fp")),
    keep!(32, ["s_cvt_i32_f32"], |i| (f32_source(i.a, i.mode) as i32) as u32 as u64, Llvm("fp_to_sint")),
    keep!(32, ["s_cvt_u32_f32"], |i| (f32_source(i.a, i.mode) as u32).into(), Llvm("fp_to_uint")),
    keep!(32, ["s_cvt_f16_f32"], |i| f32_to_f16(low_word(i.a), i.mode).into(), Llvm("fpround")),
    keep!(32, ["s_cvt_pk_rtz_f16_f32"], |i| packed_to_zero(low_word(i.a), low_word(i.b), i.mode).into(), Llvm("AMDGPUpkrtz_f16_f32")),
    keep!(32, ["s_cvt_f32_f16"], |i| half_of(i.a, i.mode).to_bits().into(), Llvm("fpextend")),
    keep!(32, ["s_cvt_hi_f32_f16"], |i| half_of(i.a >> 16, i.mode).to_bits().into(), Llvm("fpextend (srl 16)")),
    FLOAT_CONDITIONS[0][0], FLOAT_CONDITIONS[0][1], FLOAT_CONDITIONS[1][0], FLOAT_CONDITIONS[1][1],
    FLOAT_CONDITIONS[2][0], FLOAT_CONDITIONS[2][1], FLOAT_CONDITIONS[3][0], FLOAT_CONDITIONS[3][1],
    FLOAT_CONDITIONS[4][0], FLOAT_CONDITIONS[4][1], FLOAT_CONDITIONS[5][0], FLOAT_CONDITIONS[5][1],
    FLOAT_CONDITIONS[6][0], FLOAT_CONDITIONS[6][1], FLOAT_CONDITIONS[7][0], FLOAT_CONDITIONS[7][1],
    FLOAT_CONDITIONS[8][0], FLOAT_CONDITIONS[8][1], FLOAT_CONDITIONS[9][0], FLOAT_CONDITIONS[9][1],
    FLOAT_CONDITIONS[10][0], FLOAT_CONDITIONS[10][1], FLOAT_CONDITIONS[11][0], FLOAT_CONDITIONS[11][1],
    FLOAT_CONDITIONS[12][0], FLOAT_CONDITIONS[12][1], FLOAT_CONDITIONS[13][0], FLOAT_CONDITIONS[13][1],
];
