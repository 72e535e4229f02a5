//! Integer and bit operations of 64 bits.

use crate::lanes::LaneType::{B32, B64};
use crate::lanes::{VectorRow, carry_wide, wide};
use crate::source::MeaningSource::Llvm;

fn signed_product(a: u64, b: u64) -> i64 {
    i64::from(a as u32 as i32) * i64::from(b as u32 as i32)
}

fn unsigned_product(a: u64, b: u64) -> u64 {
    u64::from(a as u32) * u64::from(b as u32)
}

fn signed_sum(product: i64, c: u64) -> (u64, bool) {
    let (sum, overflow) = product.overflowing_add(c as i64);
    (sum as u64, overflow)
}

#[rustfmt::skip]
pub(crate) const ROWS: &[VectorRow] = &[
    VectorRow::new(&["v_mov_b64"], [B64; 3], B64, wide!(|a, _, _, _| a), Llvm("copy")),
    VectorRow::new(&["v_lshlrev_b64"], [B32, B64, B64], B64, wide!(|a, b, _, _| b << (a & 63)), Llvm("shl")),
    VectorRow::new(&["v_lshrrev_b64"], [B32, B64, B64], B64, wide!(|a, b, _, _| b >> (a & 63)), Llvm("srl")),
    VectorRow::new(&["v_ashrrev_i64"], [B32, B64, B64], B64, wide!(|a, b, _, _| (b as i64 >> (a & 63)) as u64), Llvm("sra")),
    VectorRow::new(&["v_mad_u64_u32", "v_mad_co_u64_u32"], [B32, B32, B64], B64,
        carry_wide!(|a, b, c, _, _| unsigned_product(a, b).overflowing_add(c)), Llvm("add (mul (zext), (zext))")),
    VectorRow::new(&["v_mad_i64_i32", "v_mad_co_i64_i32"], [B32, B32, B64], B64,
        carry_wide!(|a, b, c, _, _| signed_sum(signed_product(a, b), c)), Llvm("add (mul (sext), (sext))")),
    VectorRow::new(&["v_mad_nc_u64_u32"], [B32, B32, B64], B64,
        wide!(|a, b, c, _| unsigned_product(a, b).wrapping_add(c)), Llvm("add (mul (zext), (zext))")),
    VectorRow::new(&["v_mad_nc_i64_i32"], [B32, B32, B64], B64,
        wide!(|a, b, c, _| (signed_product(a, b) as u64).wrapping_add(c)), Llvm("add (mul (sext), (sext))")),
    VectorRow::new(&["v_add_nc_u64"], [B64; 3], B64, wide!(|a, b, _, _| a.wrapping_add(b)), Llvm("add")),
    VectorRow::new(&["v_sub_nc_u64"], [B64; 3], B64, wide!(|a, b, _, _| a.wrapping_sub(b)), Llvm("sub")),
    VectorRow::new(&["v_mul_u64"], [B64; 3], B64, wide!(|a, b, _, _| a.wrapping_mul(b)), Llvm("mul")),
    VectorRow::new(&["v_lshl_add_u64"], [B64, B32, B64], B64,
        wide!(|a, b, c, _| (a << (b & 7).min(63)).wrapping_add(c)), Llvm("add (shl)")),
    VectorRow::new(&["v_min_u64"], [B64; 3], B64, wide!(|a, b, _, _| a.min(b)), Llvm("umin")),
    VectorRow::new(&["v_max_u64"], [B64; 3], B64, wide!(|a, b, _, _| a.max(b)), Llvm("umax")),
    VectorRow::new(&["v_min_i64"], [B64; 3], B64, wide!(|a, b, _, _| (a as i64).min(b as i64) as u64), Llvm("smin")),
    VectorRow::new(&["v_max_i64"], [B64; 3], B64, wide!(|a, b, _, _| (a as i64).max(b as i64) as u64), Llvm("smax")),
];
