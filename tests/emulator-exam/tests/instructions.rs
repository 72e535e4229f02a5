//! Single instructions, assembled by LLVM, against functions that are written here.

use hotswap_emulator_exam::{LaneInputs, SingleCase, differing, random_words};
use hotswap_userland::{Workbench, say};

const ALL: &str = "10 11 12";

const fn case(text: &'static str, generations: &'static str, expect: fn(&LaneInputs, usize) -> [u32; 2]) -> SingleCase {
    SingleCase { text, generations, expect }
}

fn wide(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn split(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// One word of a result.
fn one(value: u32) -> [u32; 2] {
    [value, 0]
}

fn half(bits: u32) -> f32 {
    let (sign, exponent, mantissa) = (bits >> 15 & 1, bits >> 10 & 31, bits & 1023);
    let magnitude = match exponent {
        0 => mantissa as f32 / 16_777_216.0,
        31 => {
            if mantissa == 0 {
                f32::INFINITY
            } else {
                f32::NAN
            }
        }
        _ => (1.0 + mantissa as f32 / 1024.0) * 2_f32.powi(exponent as i32 - 15),
    };
    if sign == 0 { magnitude } else { -magnitude }
}

/// A word of the elements of `bits` bits that indices of 4 bits select, bit by bit.
fn looked_up_word(table: &[u32], indices: [u32; 2], bits: usize, word: usize) -> u32 {
    (0..32).fold(0, |result, place| {
        let (element, bit) = ((32 * word + place) / bits, (32 * word + place) % bits);
        let index = indices[element / 8] >> (element % 8 * 4) & 15;
        let from = index as usize * bits + bit;
        result | (table[from / 32] >> (from % 32) & 1) << place
    })
}

/// The first two words of them.
fn looked_up(table: &[u32], indices: [u32; 2], bits: usize) -> [u32; 2] {
    [0, 1].map(|word| looked_up_word(table, indices, bits, word))
}

/// A number from 1 on, in eighths.
fn eighths(low_bits: u32) -> u32 {
    (1.0 + (low_bits % 8) as f32 / 8.0).to_bits()
}

fn unless_nan(value: f32) -> u32 {
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() }
}

/// Replaces NaNs of the inputs by numbers, so that expectations need no rules for NaNs.
fn finite(bits: u32) -> u32 {
    if f32::from_bits(bits).is_finite() { bits } else { 0x4049_0fdb }
}

#[rustfmt::skip]
const CASES: &[SingleCase] = &[
    // Integers and bits.
    case("v_add3_u32 v5, v1, v2, v3", ALL, |v, i| { let [a, b, c, _] = v[i]; one(a.wrapping_add(b).wrapping_add(c)) }),
    case("v_lshl_add_u32 v5, v1, 7, v2", ALL, |v, i| one((v[i][0] << 7).wrapping_add(v[i][1]))),
    case("v_lshl_or_b32 v5, v1, v2, v3", ALL, |v, i| one(v[i][0] << (v[i][1] % 32) | v[i][2])),
    case("v_and_or_b32 v5, v1, v2, v3", ALL, |v, i| one(v[i][0] & v[i][1] | v[i][2])),
    case("v_or3_b32 v5, v1, v2, v3", ALL, |v, i| one(v[i][0] | v[i][1] | v[i][2])),
    case("v_xad_u32 v5, v1, v2, v3", ALL, |v, i| one((v[i][0] ^ v[i][1]).wrapping_add(v[i][2]))),
    case("v_bfi_b32 v5, v1, v2, v3", ALL, |v, i| { let [m, b, c, _] = v[i]; one(c ^ m & (b ^ c)) }),
    case("v_bfe_u32 v5, v1, 5, 11", ALL, |v, i| one(v[i][0] / 32 % 2048)),
    case("v_bfe_i32 v5, v1, 5, 11", ALL, |v, i| one((((v[i][0] / 32 % 2048) as i32 ^ 1024) - 1024) as u32)),
    case("v_bfm_b32 v5, 5, 3", ALL, |_, _| one(0xf8)),
    case("v_alignbit_b32 v5, v1, v2, v3", ALL, |v, i| one((wide(v[i][1], v[i][0]) >> (v[i][2] % 32)) as u32)),
    case("v_alignbyte_b32 v5, v1, v2, 3", ALL, |v, i| one((wide(v[i][1], v[i][0]) >> 24) as u32)),
    case("v_perm_b32 v5, v1, v2, 0x0c07010d", "11 12", |v, i| {
        one(0xff | (v[i][1] & 0xff00) | (v[i][0] >> 24 << 16))
    }),
    case("v_mov_b32 v5, v1; v_mov_b32 v6, v2; v_swap_b16 v5.h, v6.l", "11", |v, i| {
        [v[i][0] & 0xffff | v[i][1] << 16, v[i][1] & 0xffff_0000 | v[i][0] >> 16]
    }),
    case("v_mov_b32 v5, v1; v_swap_b16 v5.l, v5.h", "11", |v, i| one(v[i][0].rotate_left(16))),
    case("v_bfrev_b32 v5, v1", ALL, |v, i| one((0..32).fold(0, |r, k| r << 1 | v[i][0] >> k & 1))),
    case("v_bcnt_u32_b32 v5, v1, v2", ALL, |v, i| one((0..32).map(|k| v[i][0] >> k & 1).sum::<u32>().wrapping_add(v[i][1]))),
    case("v_ffbl_b32 v5, v1", "10", |v, i| one((0..32).find(|k| v[i][0] >> k & 1 == 1).unwrap_or(u32::MAX))),
    case("v_ctz_i32_b32 v5, v1", "11 12", |v, i| one((0..32).find(|k| v[i][0] >> k & 1 == 1).unwrap_or(u32::MAX))),
    case("v_clz_i32_u32 v5, v1", "11 12", |v, i| one((0..32).find(|k| v[i][0] << k >> 31 == 1).unwrap_or(u32::MAX))),
    case("v_mul_hi_u32 v5, v1, v2", ALL, |v, i| one(((u128::from(v[i][0]) * u128::from(v[i][1])) >> 32) as u32)),
    case("v_mul_hi_i32 v5, v1, v2", ALL, |v, i| one(((i128::from(v[i][0] as i32) * i128::from(v[i][1] as i32)) >> 32) as u32)),
    case("v_mul_i32_i24 v5, v1, v2", ALL, |v, i| {
        let low = |x: u32| i64::from((x << 8) as i32) / 256;
        one((low(v[i][0]) * low(v[i][1])) as u32)
    }),
    case("v_mad_u64_u32 v[5:6], s14, v1, v2, v[3:4]", "10 11", |v, i| {
        split((u128::from(v[i][0]) * u128::from(v[i][1]) + u128::from(wide(v[i][2], v[i][3]))) as u64)
    }),
    case("v_med3_i32 v5, v1, v2, v3", ALL, |v, i| { let mut s = [v[i][0] as i32, v[i][1] as i32, v[i][2] as i32]; s.sort(); one(s[1] as u32) }),
    case("v_min3_u32 v5, v1, v2, v3", ALL, |v, i| one(*v[i][..3].iter().min().unwrap())),
    case("v_sad_u8 v5, v1, v2, v3", ALL, |v, i| {
        let [a, b] = [v[i][0].to_le_bytes(), v[i][1].to_le_bytes()];
        one(a.iter().zip(b).map(|(x, y)| (i32::from(*x) - i32::from(y)).unsigned_abs()).sum::<u32>().wrapping_add(v[i][2]))
    }),
    case("v_lshrrev_b64 v[5:6], v1, v[2:3]", ALL, |v, i| split(wide(v[i][1], v[i][2]) >> (v[i][0] % 64))),
    case("v_ashrrev_i64 v[5:6], v1, v[2:3]", ALL, |v, i| split((wide(v[i][1], v[i][2]) as i64 >> (v[i][0] % 64)) as u64)),
    case("v_add_nc_u32 v5, v1, v2 clamp", ALL, |v, i| one((u64::from(v[i][0]) + u64::from(v[i][1])).min(0xffff_ffff) as u32)),
    case("v_add_co_u32 v5, vcc_lo, v1, v2; v_cndmask_b32 v6, 0, 1, vcc_lo", ALL, |v, i| {
        split(u64::from(v[i][0]) + u64::from(v[i][1]))
    }),
    case("v_pk_add_u16 v5, v1, v2", ALL, |v, i| one((v[i][0] & 0xffff).wrapping_add(v[i][1]) & 0xffff | ((v[i][0] >> 16) + (v[i][1] >> 16)) << 16)),
    case("v_pk_mad_u16 v5, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[0,1,1]", ALL, |v, i| {
        let part = |x: u32, y: u32, z: u32| (x & 0xffff).wrapping_mul(y & 0xffff).wrapping_add(z) & 0xffff;
        let [a, b, c, _] = v[i];
        one(part(a >> 16, b, c) | part(a, b >> 16, c >> 16) << 16)
    }),
    case("v_dot4_u32_u8 v5, v1, v2, v3", "10 11 12", |v, i| {
        let [a, b] = [v[i][0].to_le_bytes(), v[i][1].to_le_bytes()];
        one(a.iter().zip(b).map(|(x, y)| u32::from(*x) * u32::from(y)).sum::<u32>().wrapping_add(v[i][2]))
    }),
    case("v_dot4_i32_iu8 v5, v1, v2, v3 neg_lo:[1,0,0]", "11 12", |v, i| {
        let [a, b] = [v[i][0].to_le_bytes(), v[i][1].to_le_bytes()];
        one(a.iter().zip(b).map(|(x, y)| i32::from(*x as i8) * i32::from(y)).sum::<i32>().wrapping_add(v[i][2] as i32) as u32)
    }),
    // Comparisons.
    case("v_cmp_gt_u64 vcc_lo, v[1:2], v[3:4]; v_cndmask_b32 v5, 0, 1, vcc_lo", ALL, |v, i| one(u32::from(wide(v[i][0], v[i][1]) > wide(v[i][2], v[i][3])))),
    case("v_cmp_lt_u32 vcc_lo, v1, v2; v_cndmask_b32 v5, v3, v4, vcc_lo", ALL, |v, i| one(if v[i][0] < v[i][1] { v[i][3] } else { v[i][2] })),
    case("v_cmp_lt_i16 vcc_lo, v1, v2; v_cndmask_b32 v5, 0, 1, vcc_lo", "10", |v, i| one(u32::from((v[i][0] as i16) < v[i][1] as i16))),
    case("v_and_b32 v8, 1, v1; v_mov_b32 v9, 0; v_cmpx_ne_u64 0, v[8:9]; v_mov_b32 v5, 7", ALL, |v, i| one(if v[i][0] % 2 == 0 { 0 } else { 7 })),
    case("v_cmp_nlt_f32 vcc_lo, v1, v2; v_cndmask_b32 v5, 0, 1, vcc_lo", ALL, |v, i| {
        let [x, y] = [v[i][0], v[i][1]].map(f32::from_bits);
        one(u32::from(x.partial_cmp(&y) != Some(std::cmp::Ordering::Less)))
    }),
    case("v_cmp_lt_f32 vcc_lo, -v1, |v2|; v_cndmask_b32 v5, 0, 1, vcc_lo", ALL, |v, i| one(u32::from(-f32::from_bits(v[i][0]) < f32::from_bits(v[i][1]).abs()))),
    // Negative normal numbers.
    case("v_cmp_class_f32 vcc_lo, v1, 8; v_cndmask_b32 v5, 0, 1, vcc_lo", ALL, |v, i| one(u32::from(v[i][0] >> 31 == 1 && f32::from_bits(v[i][0]).is_normal()))),
    // Floats.
    case("v_fma_f32 v5, v1, |v2|, -v3", ALL, |v, i| {
        let [a, b, c, _] = v[i].map(|bits| f64::from(f32::from_bits(bits)));
        let exact = a * b.abs();
        // Sums of doubles are exact enough where one of the numbers dominates or both are short; others are checked by value.
        one(unless_nan(f32::mul_add(a as f32, b.abs() as f32, -c as f32))).map(|word| if exact.is_nan() { 0x7fc0_0000 } else { word })
    }),
    // The NaN of another instruction's third source, which the second one does not have, is none of its own.
    case("v_fma_f32 v6, 1.0, 2.0, 0x7fc12345; v_mov_b32 v8, 0x7f800000; v_sub_f32 v5, v8, v8", ALL, |_, _| [0x7fc0_0000, 0x7fc1_2345]),
    case("v_max_f32 v5, v1, v2", "10 11", |v, i| {
        let [a, b] = [v[i][0], v[i][1]].map(f32::from_bits);
        one(unless_nan(if a.is_nan() { b } else if b.is_nan() || a > b { a } else if a == b { if a.is_sign_negative() { b } else { a } } else { b }))
    }),
    case("v_mul_f32 v5, v1, v2 clamp mul:2", ALL, |v, i| {
        let product = f32::from_bits(v[i][0]) * f32::from_bits(v[i][1]);
        one(if product.is_nan() { 0 } else { (product * 2.0).clamp(0.0, 1.0).to_bits_or_zero() })
    }),
    case("v_ldexp_f32 v5, 1.0, v1", ALL, |v, i| { let e = v[i][0] as i32; one((2_f64.powi(e.clamp(-400, 400)) as f32).to_bits()) }),
    case("v_frexp_exp_i32_f32 v5, v1", ALL, |v, i| {
        let x = f32::from_bits(v[i][0]);
        one(if x == 0.0 || !x.is_finite() { 0 } else { (f64::from(x.abs()).log2().floor() as i32 + 1) as u32 })
    }),
    case("v_cvt_u32_f32 v5, v1", ALL, |v, i| {
        let x = f64::from(f32::from_bits(v[i][0]));
        one(if x > 0.0 { x.min(4_294_967_295.0) as u64 as u32 } else { 0 })
    }),
    case("v_cvt_f32_ubyte2 v5, v1", ALL, |v, i| one(f32::from(v[i][0].to_le_bytes()[2]).to_bits())),
    case("v_trunc_f64 v[5:6], -|v[1:2]|", ALL, |v, i| {
        let x = -f64::from_bits(wide(v[i][0], v[i][1])).abs();
        split(if x.is_nan() { x.to_bits() | 1 << 51 } else if x > -4e18 { (x as i64 as f64).copysign(-1.0).to_bits() } else { x.to_bits() })
    }),
    case("v_trunc_f64 v[5:6], v[1:2]", ALL, |v, i| {
        let x = f64::from_bits(wide(v[i][0], v[i][1]));
        split(if x.is_nan() { x.to_bits() | 1 << 51 } else if x.abs() < 4e18 { (x as i64 as f64).copysign(x).to_bits() } else { x.to_bits() })
    }),
    case("v_cvt_f32_f16 v5, v1", "10", |v, i| { let x = half(v[i][0] & 0xffff); one(if x.is_nan() { v[i][0] << 16 & 0x8000_0000 | 0x7fc0_0000 | v[i][0] << 13 & 0x7f_e000 } else { x.to_bits() }) }),
    case("v_and_b32 v8, 0x3fff3fff, v1; v_and_b32 v9, 0x3fff3fff, v2; v_fma_mix_f32 v5, v8, v9, v3 op_sel:[0,1,0] op_sel_hi:[1,1,0]", ALL, |v, i| {
        let (a, b, c) = (half(v[i][0] & 0x3fff), half(v[i][1] >> 16 & 0x3fff), f32::from_bits(v[i][2]));
        one(f32::mul_add(a, b, c).to_bits_or_nan())
    }),
    // Between lanes.
    case("v_mov_b32_dpp v5, v1 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf", ALL, |v, i| one(v[i ^ 3][0])),
    case("v_mov_b32_dpp v5, v1 row_shr:3 row_mask:0xf bank_mask:0xf", ALL, |v, i| one(if i % 16 >= 3 { v[i - 3][0] } else { 0 })),
    case("v_mov_b32_dpp v5, v1 row_ror:5 row_mask:0xf bank_mask:0xf", ALL, |v, i| one(v[i / 16 * 16 + (i + 11) % 16][0])),
    case("v_mov_b32_dpp v5, v1 row_mirror row_mask:0x1 bank_mask:0xf", ALL, |v, i| one(if i < 16 { v[15 - i][0] } else { 0 })),
    case("v_add_nc_u32_dpp v5, v1, v2 row_share:2 row_mask:0xf bank_mask:0xf", ALL, |v, i| one(v[i / 16 * 16 + 2][0].wrapping_add(v[i][1]))),
    case("v_mov_b32_dpp v5, v1 dpp8:[7,6,5,4,3,2,1,0]", ALL, |v, i| one(v[i ^ 7][0])),
    case("ds_bpermute_b32 v5, v7, v1 offset:20; WAIT", ALL, |v, i| one(v[(i + 5) % 32][0])),
    case("ds_swizzle_b32 v5, v1 offset:swizzle(SWAP,16); WAIT", ALL, |v, i| one(v[i ^ 16][0])),
    case("v_permlane16_b32 v5, v1, 0, 0", ALL, |v, i| one(v[i / 16 * 16][0])),
    case("v_permlanex16_b32 v5, v1, 0, 0", ALL, |v, i| one(v[(i / 16 * 16) ^ 16][0])),
    case("v_mbcnt_lo_u32_b32 v5, 0x55555555, 0", "10 11 12", |_, i| one((i as u32).div_ceil(2))),
    case("v_readlane_b32 s12, v2, 9", ALL, |v, _| one(v[9][1])),
    case("v_writelane_b32 v5, s9, 4", ALL, |v, i| one(if i == 4 { v[0][1] } else { 0 })),
    // A vector function with a scalar result.
    case("s_mov_b32 s14, 0x41100000; v_s_sqrt_f32 s12, s14", "12", |_, _| one(0x4040_0000)),
    case("s_mov_b32 exec_lo, 0x30; v_readfirstlane_b32 s12, v3", ALL, |v, _| one(v[4][2])),
    // LDS.
    case("ds_write_b32 v7, v1; WAIT; ds_read_u16 v5, v7 offset:2; WAIT", "10", |v, i| one(v[i][0] >> 16)),
    case("ds_store_b32 v7, v1; WAIT; ds_load_u16 v5, v7 offset:2; WAIT", "11 12", |v, i| one(v[i][0] >> 16)),
    case("ds_write_b32 v7, v1; WAIT; ds_read2_b32 v[5:6], v7 offset0:1 offset1:0; WAIT", "10", |v, i| [v.get(i + 1).map_or(0, |next| next[0]), v[i][0]]),
    case("ds_store_b32 v7, v1; WAIT; ds_load_2addr_b32 v[5:6], v7 offset0:1 offset1:0; WAIT", "11 12", |v, i| [v.get(i + 1).map_or(0, |next| next[0]), v[i][0]]),
    case("ds_add_u32 v6, v1; WAIT; ds_read_b32 v5, v6; WAIT", "10", |v, _| one(v.iter().fold(0, |sum, lane| sum.wrapping_add(lane[0])))),
    // gfx12.5: both addresses have the offset of the instruction.
    case("v_lshlrev_b32 v8, 4, v0; global_load_async_to_lds_b32 v7, v8, s[4:5] offset:4; WAIT; ds_load_b32 v5, v7 offset:4; WAIT", "125", |v, i| one(v[i][1])),
    case("v_lshlrev_b32 v8, 4, v0; cluster_load_async_to_lds_b64 v11, v8, s[4:5] offset:8; WAIT; ds_load_b64 v[8:9], v11 offset:8; WAIT; v_mov_b32 v5, v8; v_mov_b32 v6, v9", "125", |v, i| [v[i][2], v[i][3]]),
    case("ds_store_b32 v7, v3 offset:8; WAIT; s_mov_b32 exec_lo, 0x7fffffff; global_store_async_from_lds_b32 v11, v7, s[6:7] offset:8; WAIT; global_load_b32 v5, v11, s[6:7] offset:8; WAIT", "125", |v, i| one(if i < 31 { v[i][2] } else { 0 })),
    // Tables of 16 elements: the first source above the second, indices in the third. The last one overwrites its indices.
    case("v_perm_pk16_b4_u4 v[8:9], v1, v4, v[2:3]; v_mov_b32 v5, v8; v_mov_b32 v6, v9", "125", |v, i| {
        let [a, b, c, d] = v[i];
        looked_up(&[d, a], [b, c], 4)
    }),
    case("v_mov_b32 v8, v4; v_mov_b32 v9, v1; v_perm_pk16_b6_u4 v[12:14], v1, v[2:3], v[8:9]; v_mov_b32 v5, v12; v_mov_b32 v6, v13", "125", |v, i| {
        let [a, b, c, d] = v[i];
        looked_up(&[b, c, a], [d, a], 6)
    }),
    case("v_mov_b32 v8, v4; v_mov_b32 v9, v1; v_perm_pk16_b6_u4 v[12:14], s8, v[2:3], v[8:9]; v_mov_b32 v5, v14", "125", |v, i| {
        let [a, b, c, d] = v[i];
        [looked_up_word(&[b, c, v[0][0]], [d, a], 6, 2), 0]
    }),
    case("v_mov_b32 v8, v1; v_mov_b32 v9, v4; v_mov_b32 v12, v4; v_mov_b32 v13, v3; v_perm_pk16_b8_u4 v[12:15], v[2:3], v[8:9], v[12:13]; v_mov_b32 v5, v12; v_mov_b32 v6, v13", "125", |v, i| {
        let [a, b, c, d] = v[i];
        looked_up(&[a, d, b, c], [d, c], 8)
    }),
    case("v_perm_pk16_b8_u4 v[12:15], v[2:3], s[8:9], v[2:3]; v_mov_b32 v5, v14; v_mov_b32 v6, v15", "125", |v, i| {
        let ([_, b, c, _], [low, high, _, _]) = (v[i], v[0]);
        [2, 3].map(|word| looked_up_word(&[low, high, b, c], [b, c], 8, word))
    }),
    // gfx9: waves of 64 lanes, of which 32 are active.
    case("v_cmp_lt_u64 vcc_lo, v[1:2], v[3:4]; v_cndmask_b32 v5, 0, 1, vcc_lo", "9 10 11 12", |v, i| one(u32::from(wide(v[i][0], v[i][1]) < wide(v[i][2], v[i][3])))),
    case("v_mov_b32 v5, v3; v_fmac_f32 v5, v1, v2", "90a 942 950 10 11 12", |v, i| { let [a, b, c, _] = v[i].map(f32::from_bits); one(f32::mul_add(a, b, c).to_bits_or_nan()) }),
    case("s_mov_b32 s14, 0x55555555; s_mov_b32 exec_hi, -1; v_mbcnt_lo_u32_b32 v5, -1, 0; v_mbcnt_hi_u32_b32 v5, s14, v5; v_mov_b32_dpp v6, v5 wave_ror:1 row_mask:0xf bank_mask:0xf; s_mov_b32 exec_hi, 0", "9 90a 942 950", |_, i| {
        let count = |lane: u32| if lane < 32 { lane } else { 32 + (lane - 32).div_ceil(2) };
        [count(i as u32), count((i as u32 + 63) % 64)]
    }),
    case("v_mov_b32 v5, v2; v_mov_b32_dpp v5, v1 row_bcast:15 row_mask:0xa bank_mask:0xf", "9 90a 942 950", |v, i| one(if i < 16 { v[i][1] } else { v[15][0] })),
    case("v_mov_b32_dpp v5, v1 wave_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:0", "9", |v, i| one(if i < 31 { v[i + 1][0] } else { 0 })),
    case("v_mov_b32_dpp v5, v1 wave_shr:1 row_mask:0xf bank_mask:0xf", "9", |v, i| one(if i > 0 { v[i - 1][0] } else { 0 })),
    case("v_mov_b32_dpp v5, v1 row_newbcast:3 row_mask:0xf bank_mask:0xf", "90a 942 950", |v, i| one(v[i / 16 * 16 + 3][0])),
    case("v_add_u32_sdwa v5, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:BYTE_2 src1_sel:WORD_1", "9 90a 942 950", |v, i| one((((v[i][0] >> 16 & 255) + (v[i][1] >> 16)) & 0xffff) << 16)),
    case("v_mov_b32 v6, -1; v_mov_b32 v5, v6; v_add_u16 v5, v1, v2", "9 90a 942 950", |v, i| [v[i][0].wrapping_add(v[i][1]) & 0xffff, u32::MAX]),
    case("v_mov_b32 v5, -1; v_mad_u16 v5, v1, v2, v3", "9 90a 942 950", |v, i| one(v[i][0].wrapping_mul(v[i][1]).wrapping_add(v[i][2]) | 0xffff_0000)),
    case("s_mov_b32 s14, 1; s_set_gpr_idx_on s14, gpr_idx(SRC0); v_mov_b32 v5, v1; s_set_gpr_idx_idx 2; v_mov_b32 v6, v1; s_set_gpr_idx_off; v_add_u32 v6, v6, v1", "9 90a 942 950", |v, i| [v[i][1], v[i][2].wrapping_add(v[i][0])]),
    case("s_mov_b32 s14, 1; s_set_gpr_idx_on s14, gpr_idx(SRC0); s_set_gpr_idx_mode gpr_idx(DST); v_mov_b32 v5, v1; s_set_gpr_idx_off; v_mov_b32 v5, v2", "9 90a 942 950", |v, i| [v[i][1], v[i][0]]),
    case("v_accvgpr_write_b32 a3, v1; v_accvgpr_write_b32 a1, v2; v_accvgpr_read_b32 v5, a1; v_accvgpr_read_b32 v6, a3", "90a 942 950", |v, i| [v[i][1], v[i][0]]),
    case("v_accvgpr_write_b32 a3, v1; v_accvgpr_mov_b32 a5, a3; v_accvgpr_read_b32 v6, a5", "90a 942 950", |v, i| [0, v[i][0]]),
    case("v_mov_b32 v6, v1; v_mov_b32 v7, v2; v_pk_mov_b32 v[4:5], v[6:7], v[6:7] op_sel:[1,0]; v_mov_b32 v6, v4", "90a 942 950", |v, i| [v[i][0], v[i][1]]),
    case("v_mov_b32 v8, v1; v_mov_b32 v9, v2; v_mov_b32 v10, v3; v_mov_b32 v11, v4; v_pk_add_f32 v[12:13], v[8:9], v[10:11] neg_lo:[0,1]; v_mov_b32 v5, v12; v_mov_b32 v6, v13; v_lshlrev_b32 v11, 3, v0", "90a 942 950", |v, i| {
        let [a, b, c, d] = v[i].map(f32::from_bits);
        [(a - c).to_bits_or_nan(), (b + d).to_bits_or_nan()]
    }),
    // 1 * 1 + D of numbers from 1 to 1.875 in eighths.
    case("v_and_b32 v8, 0x03800380, v3; v_or_b32 v5, 0x3c003c00, v8; v_mov_b32 v9, 0x3c003c00; v_pk_fmac_f16 v5, v9, v9", "10 11 12", |v, i| {
        one(0x4000_4000 | (v[i][2] & 0x0380_0380) >> 1)
    }),
    case("v_mov_b32 v5, v3; v_dot2c_i32_i16 v5, v1, v2", "90a 942 950", |v, i| {
        let part = |x: u32, shift: u32| i32::from((x >> shift) as i16);
        one((0..2).fold(v[i][2] as i32, |sum, k| sum.wrapping_add(part(v[i][0], 16 * k).wrapping_mul(part(v[i][1], 16 * k)))) as u32)
    }),
    // 8-bit floats: of the bytes 0x38 to 0x3f, 1 to 1.875 (OCP) or half of it (FNUZ).
    case("s_mov_b32 s14, 0x38383838; s_mov_b32 s15, 0x07070707; v_and_b32 v8, s15, v1; v_or_b32 v8, s14, v8; v_cvt_f32_fp8 v5, v8; v_cvt_f32_fp8_sdwa v6, v8 src0_sel:BYTE_3", "950", |v, i| {
        [0, 3].map(|byte| eighths(v[i][0] >> (8 * byte)))
    }),
    case("s_mov_b32 s14, 0x38383838; s_mov_b32 s15, 0x07070707; v_and_b32 v8, s15, v1; v_or_b32 v8, s14, v8; v_cvt_f32_fp8 v5, v8; v_cvt_f32_fp8_sdwa v6, v8 src0_sel:BYTE_3; v_add_f32 v5, v5, v5; v_add_f32 v6, v6, v6", "942", |v, i| {
        [0, 3].map(|byte| eighths(v[i][0] >> (8 * byte)))
    }),
    case("v_and_b32 v8, 0x07070707, v1; v_or_b32 v8, 0x38383838, v8; v_cvt_f32_fp8 v5, v8; v_cvt_f32_fp8 v6, v8 byte_sel:2", "12", |v, i| {
        [0, 2].map(|byte| eighths(v[i][0] >> (8 * byte)))
    }),
    case("v_and_b32 v8, 0x07070707, v1; v_or_b32 v8, 0x38383838, v8; v_cvt_pk_f32_fp8 v[5:6], v8 op_sel:[1,0]", "12", |v, i| {
        [2, 3].map(|byte| eighths(v[i][0] >> (8 * byte)))
    }),
    case("s_mov_b32 s14, 0x3ff00000; s_mov_b32 s15, 0x3f800000; v_and_b32 v8, s14, v1; v_or_b32 v8, s15, v8; v_and_b32 v8, s14, v8; v_or_b32 v6, -1, v2; v_cvt_pk_fp8_f32 v6, v8, -v8 op_sel:[0,0,1]; v_mov_b32 v5, v6", "950 12", |v, i| {
        // From 1 to 1.875: the upper bits of the mantissa.
        let code = 0x38 | v[i][0] >> 20 & 7;
        let word = 0xffff | code << 16 | (code | 0x80) << 24;
        [word, word]
    }),
    // Scalars.
    case("s_brev_b32 s12, s8", ALL, |v, _| one((0..32).fold(0, |r, k| r << 1 | v[0][0] >> k & 1))),
    case("s_mul_i32 s12, s8, s9", ALL, |v, _| one(v[0][0].wrapping_mul(v[0][1]))),
    case("s_mul_hi_u32 s12, s8, s9", ALL, |v, _| one(((u128::from(v[0][0]) * u128::from(v[0][1])) >> 32) as u32)),
    case("s_bfe_u32 s12, s8, 0x70004", ALL, |v, _| one(v[0][0] / 16 % 128)),
    case("s_bfe_i32 s12, s8, 0x70004", ALL, |v, _| one((((v[0][0] / 16 % 128) as i32 ^ 64) - 64) as u32)),
    case("s_lshl_b64 s[12:13], s[8:9], 9", ALL, |v, _| split(wide(v[0][0], v[0][1]) << 9)),
    case("s_ashr_i64 s[12:13], s[8:9], s10", ALL, |v, _| split((wide(v[0][0], v[0][1]) as i64 >> (v[0][2] % 64)) as u64)),
    case("s_bcnt1_i32_b64 s12, s[8:9]", ALL, |v, _| one((0..64).map(|k| (wide(v[0][0], v[0][1]) >> k & 1) as u32).sum())),
    case("s_cmp_gt_i32 s8, s9; s_cselect_b32 s12, s10, s11", ALL, |v, _| one(if v[0][0] as i32 > v[0][1] as i32 { v[0][2] } else { v[0][3] })),
    case("s_pack_lh_b32_b16 s12, s8, s9", ALL, |v, _| one(v[0][0] & 0xffff | v[0][1] & 0xffff_0000)),
    case("s_add_u32 s12, s8, s9; s_addc_u32 s13, s10, s11", "10 11", |v, _| split(wide(v[0][0], v[0][2]).wrapping_add(wide(v[0][1], v[0][3])))),
    case("s_add_co_u32 s12, s8, s9; s_add_co_ci_u32 s13, s10, s11", "12", |v, _| split(wide(v[0][0], v[0][2]).wrapping_add(wide(v[0][1], v[0][3])))),
    case("s_sub_u32 s12, s8, s9; s_subb_u32 s13, s10, s11", "10 11", |v, _| split(wide(v[0][0], v[0][2]).wrapping_sub(wide(v[0][1], v[0][3])))),
    case("s_sub_co_u32 s12, s8, s9; s_sub_co_ci_u32 s13, s10, s11", "12", |v, _| split(wide(v[0][0], v[0][2]).wrapping_sub(wide(v[0][1], v[0][3])))),
    case("s_and_saveexec_b32 s12, s8; v_mov_b32 v6, 1; s_mov_b32 s13, exec_lo", ALL, |v, _| [u32::MAX, v[0][0]]),
    // One and a little, rounded up.
    case("s_mov_b32 s14, 1; s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), s14; v_mov_b32 v8, 1.0; v_add_f32 v5, 0x30800000, v8", ALL, |_, _| one(0x3f80_0001)),
    case("s_movk_i32 s12, 0x8001; s_mulk_i32 s12, 3", ALL, |_, _| one((-32767 * 3_i32) as u32)),
];

trait Bits {
    fn to_bits_or_zero(self) -> u32;
    fn to_bits_or_nan(self) -> u32;
}

impl Bits for f32 {
    fn to_bits_or_zero(self) -> u32 {
        if self == 0.0 { 0 } else { self.to_bits() }
    }

    fn to_bits_or_nan(self) -> u32 {
        if self.is_nan() { 0x7fc0_0000 } else { self.to_bits() }
    }
}

fn inputs(seed: u64) -> LaneInputs {
    let words = random_words(seed, 128);
    std::array::from_fn(|lane| std::array::from_fn(|word| finite(words[4 * lane + word])))
}

#[test]
fn instructions_compute_as_stated() {
    let Some(bench) = Workbench::new("instructions") else { return };
    let mut failures = Vec::new();
    for (gpu, generation) in [
        ("gfx900", "9"),
        ("gfx90a", "90a"),
        ("gfx942", "942"),
        ("gfx950", "950"),
        ("gfx1030", "10"),
        ("gfx1100", "11"),
        ("gfx1201", "12"),
        ("gfx1250", "125"),
    ] {
        failures.extend(differing(&bench, gpu, generation, CASES, &[1, 2, 3].map(inputs)));
    }
    say(&format!("instructions: {} cases", CASES.len()));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
