//! Read-modify-write operations of LDS and of memory.

#[derive(Debug, Clone, Copy)]
pub struct AtomicRow {
    /// Its name within mnemonics, without prefix and type.
    pub name: &'static str,
    /// 64 bits instead of 32.
    pub is_wide: bool,
    pub update: AtomicUpdate,
    /// It has a value to compare with besides the new one.
    pub compares: bool,
}

/// The new value of memory: of its old value, the operand, and the value that is compared with.
pub type AtomicUpdate = fn(old: u64, operand: u64, compared: u64) -> u64;

use crate::float::bf16_to_f32;
use crate::half;
use crate::mode::FloatMode;
use crate::rounding::add_odd;
use crate::single::{maximum_number, minimum_number};
use crate::small_float::to_bf16;

fn apply_single(old: u64, operand: u64, function: fn(u32, u32) -> u32) -> u64 {
    u64::from(function(old as u32, operand as u32))
}

fn add_singles(a: u32, b: u32) -> u32 {
    (f32::from_bits(a) + f32::from_bits(b)).to_bits()
}

fn apply_double(old: u64, operand: u64, function: fn(f64, f64) -> f64) -> u64 {
    function(f64::from_bits(old), f64::from_bits(operand)).to_bits()
}

fn apply_halves(old: u64, operand: u64, function: fn(u16, u16) -> u16) -> u64 {
    apply_half_word(0, &function, old, operand) | apply_half_word(16, &function, old, operand)
}

fn apply_half_word(shift: u32, function: &fn(u16, u16) -> u16, old: u64, operand: u64) -> u64 {
    u64::from(function((old >> shift) as u16, (operand >> shift) as u16)) << shift
}

fn add_brains(a: u16, b: u16) -> u16 {
    to_bf16(add_odd(f64::from(bf16_to_f32(a)), f64::from(bf16_to_f32(b))), FloatMode::PLAIN)
}

fn wrapping_increment(old: u64, limit: u64) -> u64 {
    if old >= limit { 0 } else { old + 1 }
}

fn wrapping_decrement(old: u64, limit: u64) -> u64 {
    if old == 0 || old > limit { limit } else { old - 1 }
}

macro_rules! row {
    ($name:literal, $is_wide:literal, $update:expr) => {
        AtomicRow { name: $name, is_wide: $is_wide, update: $update, compares: false }
    };
    ($name:literal, $is_wide:literal, compares, $update:expr) => {
        AtomicRow { name: $name, is_wide: $is_wide, update: $update, compares: true }
    };
}

/// The operations. The names are those of GFX12; [`OTHER_NAMES`] has others.
#[rustfmt::skip]
const ROWS: &[AtomicRow] = &[
    row!("swap_b32", false, |_, new, _| new),
    row!("swap_b64", true, |_, new, _| new),
    row!("cmpswap_b32", false, compares, |old, new, compared| if old == compared { new } else { old }),
    row!("cmpswap_b64", true, compares, |old, new, compared| if old == compared { new } else { old }),
    row!("cmpswap_f32", false, compares, |old, new, compared| {
        if f32::from_bits(old as u32) == f32::from_bits(compared as u32) { new } else { old }
    }),
    row!("cmpswap_f64", true, compares, |old, new, compared| {
        if f64::from_bits(old) == f64::from_bits(compared) { new } else { old }
    }),
    row!("add_u32", false, |old, operand, _| u64::from((old as u32).wrapping_add(operand as u32))),
    row!("add_u64", true, |old, operand, _| old.wrapping_add(operand)),
    row!("sub_u32", false, |old, operand, _| u64::from((old as u32).wrapping_sub(operand as u32))),
    row!("sub_u64", true, |old, operand, _| old.wrapping_sub(operand)),
    row!("rsub_u32", false, |old, operand, _| u64::from((operand as u32).wrapping_sub(old as u32))),
    row!("rsub_u64", true, |old, operand, _| operand.wrapping_sub(old)),
    row!("min_i32", false, |old, operand, _| (old as i32).min(operand as i32) as u32 as u64),
    row!("min_i64", true, |old, operand, _| (old as i64).min(operand as i64) as u64),
    row!("min_u32", false, |old, operand, _| old.min(operand)),
    row!("min_u64", true, |old, operand, _| old.min(operand)),
    row!("max_i32", false, |old, operand, _| (old as i32).max(operand as i32) as u32 as u64),
    row!("max_i64", true, |old, operand, _| (old as i64).max(operand as i64) as u64),
    row!("max_u32", false, |old, operand, _| old.max(operand)),
    row!("max_u64", true, |old, operand, _| old.max(operand)),
    row!("and_b32", false, |old, operand, _| old & operand),
    row!("and_b64", true, |old, operand, _| old & operand),
    row!("or_b32", false, |old, operand, _| old | operand),
    row!("or_b64", true, |old, operand, _| old | operand),
    row!("xor_b32", false, |old, operand, _| old ^ operand),
    row!("xor_b64", true, |old, operand, _| old ^ operand),
    row!("inc_u32", false, |old, operand, _| wrapping_increment(old, operand)),
    row!("inc_u64", true, |old, operand, _| wrapping_increment(old, operand)),
    row!("dec_u32", false, |old, operand, _| wrapping_decrement(old, operand)),
    row!("dec_u64", true, |old, operand, _| wrapping_decrement(old, operand)),
    row!("sub_clamp_u32", false, |old, operand, _| old.saturating_sub(operand)),
    row!("cond_sub_u32", false, |old, operand, _| if old >= operand { old - operand } else { old }),
    row!("add_f32", false, |old, operand, _| apply_single(old, operand, add_singles)),
    row!("add_f64", true, |old, operand, _| apply_double(old, operand, |a, b| a + b)),
    row!("min_num_f32", false, |old, operand, _| apply_single(old, operand, |a, b| minimum_number(a, b, FloatMode::PLAIN))),
    row!("max_num_f32", false, |old, operand, _| apply_single(old, operand, |a, b| maximum_number(a, b, FloatMode::PLAIN))),
    row!("min_num_f64", true, |old, operand, _| apply_double(old, operand, f64::min)),
    row!("max_num_f64", true, |old, operand, _| apply_double(old, operand, f64::max)),
    row!("pk_add_f16", false, |old, operand, _| apply_halves(old, operand, |a, b| half::add_f16(a, b, FloatMode::PLAIN))),
    row!("pk_add_bf16", false, |old, operand, _| apply_halves(old, operand, add_brains)),
    row!("mskor_b32", false, compares, |old, operand, mask| old & !mask | operand),
    row!("mskor_b64", true, compares, |old, operand, mask| old & !mask | operand),
];

/// Names of older targets.
#[rustfmt::skip]
const OTHER_NAMES: &[(&str, &str)] = &[
    ("swap", "swap_b32"), ("swap_x2", "swap_b64"), ("cmpswap", "cmpswap_b32"), ("cmpswap_x2", "cmpswap_b64"),
    ("add", "add_u32"), ("add_x2", "add_u64"), ("sub", "sub_u32"), ("sub_x2", "sub_u64"),
    ("smin", "min_i32"), ("smin_x2", "min_i64"), ("umin", "min_u32"), ("umin_x2", "min_u64"),
    ("smax", "max_i32"), ("smax_x2", "max_i64"), ("umax", "max_u32"), ("umax_x2", "max_u64"),
    ("and", "and_b32"), ("and_x2", "and_b64"), ("or", "or_b32"), ("or_x2", "or_b64"),
    ("xor", "xor_b32"), ("xor_x2", "xor_b64"), ("inc", "inc_u32"), ("inc_x2", "inc_u64"),
    ("dec", "dec_u32"), ("dec_x2", "dec_u64"), ("csub", "sub_clamp_u32"), ("csub_u32", "sub_clamp_u32"),
    ("fmin", "min_num_f32"), ("fmin_x2", "min_num_f64"), ("fmax", "max_num_f32"), ("fmax_x2", "max_num_f64"),
    ("fcmpswap", "cmpswap_f32"), ("fcmpswap_x2", "cmpswap_f64"),
    ("min_f32", "min_num_f32"), ("max_f32", "max_num_f32"), ("min_f64", "min_num_f64"), ("max_f64", "max_num_f64"),
    ("wrxchg_b32", "swap_b32"), ("wrxchg_b64", "swap_b64"), ("storexchg_b32", "swap_b32"), ("storexchg_b64", "swap_b64"),
    ("cmpst_b32", "cmpswap_b32"), ("cmpst_b64", "cmpswap_b64"), ("cmpst_f32", "cmpswap_f32"), ("cmpst_f64", "cmpswap_f64"),
    ("cmpstore_b32", "cmpswap_b32"), ("cmpstore_b64", "cmpswap_b64"),
    ("cmpstore_f32", "cmpswap_f32"), ("cmpstore_f64", "cmpswap_f64"),
];

/// The operation of a mnemonic such as `global_atomic_add_u32`, `ds_add_rtn_u32` or `s_atomic_add`.
pub(crate) fn find_atomic(mnemonic: &str) -> Option<&'static AtomicRow> {
    let prefixes = ["global_atomic_", "flat_atomic_", "buffer_atomic_", "s_buffer_atomic_", "s_atomic_", "ds_"];
    let rest = prefixes.iter().find_map(|prefix| mnemonic.strip_prefix(prefix))?;
    let name = rest.replace("_rtn", "");
    let name = OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name.as_str(), |(_, name)| name);
    ROWS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_lead_to_rows() {
        for (_, name) in OTHER_NAMES {
            assert!(ROWS.iter().any(|row| row.name == *name), "{name}");
        }
        assert_eq!(find_atomic("ds_cmpst_rtn_b32").unwrap().name, "cmpswap_b32");
        assert_eq!(find_atomic("global_atomic_add_x2").unwrap().name, "add_u64");
        assert!(find_atomic("ds_read_b32").is_none());
    }
}
