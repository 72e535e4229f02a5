//! The instructions of random kernels.
//!
//! A placeholder is a role with a number of registers: `{d8}` is a result of eight, `{a}`, `{b}` and `{c}` are the first,
//! second and third source, as banks have them. `{m8}` is an addend that may be the result's own registers, `{p}` the
//! register of a bank that holds an address, `{q}` its pair, `{x}` a bit of a small offset. `{s}` is a scalar register,
//! `{t}` an even pair, `{k}` a number of two digits.

/// The operation that is to be waited for after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PendingKind {
    /// Nothing.
    None,
    /// A load of vector memory.
    Load,
    Store,
    /// An access to LDS.
    Lds,
    /// A load by the scalar unit.
    Scalar,
    /// A transfer of a tensor.
    Tensor,
    /// A transfer between memory and LDS.
    Async,
}

/// The place where an instruction may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AllowedPlace {
    Any,
    /// Where all lanes are active.
    AllLanes,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Template {
    pub(super) text: &'static str,
    /// How likely it is.
    pub(super) weight: u32,
    pub(super) pending: PendingKind,
    pub(super) place: AllowedPlace,
    /// Whether a `v_nop` must follow.
    pub(super) needs_nop: bool,
}

const fn plain(text: &'static str, weight: u32) -> Template {
    Template { text, weight, pending: PendingKind::None, place: AllowedPlace::Any, needs_nop: false }
}

const fn memory(text: &'static str, pending: PendingKind, weight: u32) -> Template {
    Template { pending, ..plain(text, weight) }
}

const fn matrix(text: &'static str, weight: u32) -> Template {
    Template { place: AllowedPlace::AllLanes, ..plain(text, weight) }
}

const fn spaced(text: &'static str, weight: u32) -> Template {
    Template { needs_nop: true, ..plain(text, weight) }
}

use PendingKind::{Async, Lds, Load, Scalar, Store, Tensor};

#[rustfmt::skip]
pub(super) const TEMPLATES: &[Template] = &[
    plain("v_mov_b32 {d}, {a}", 4),
    plain("v_mov_b32 {d}, {s}", 2),
    plain("v_add_nc_u32 {d}, {a}, {b}", 6),
    plain("v_xor_b32 {d}, 0x{k}, {b}", 4),
    plain("v_mul_lo_u32 {d}, {a}, {b}", 3),
    plain("v_add_nc_u64 {d2}, {a2}, {b2}", 3),
    plain("v_fma_f32 {d}, {a}, {b}, {c}", 3),
    plain("v_pk_fma_f32 {d2}, {a2}, {b2}, {c2}", 2),
    plain("v_lshl_add_u32 {d}, {a}, 3, {c}", 2),
    plain("v_alignbit_b32 {d}, {a}, {b}, {c}", 1),
    plain("v_cmp_gt_u32 vcc_lo, {a}, {b}", 3),
    plain("v_cndmask_b32 {d}, {a}, {b}, vcc_lo", 3),
    plain("v_cmp_lt_i32 {s}, {a}, {b}", 1),
    plain("v_readfirstlane_b32 {s}, {a}", 2),
    plain("v_mov_b32_dpp {d}, {a} quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", 1),
    spaced("v_exp_f32 {d}, {a}", 2),
    spaced("v_rcp_f32 {d}, {a}", 1),
    spaced("v_perm_pk16_b4_u4 {d2}, {a}, {b}, {c2}", 1),
    plain("s_add_co_u32 {s}, {s}, {s}", 3),
    plain("s_mov_b32 {s}, 0x{k}", 2),
    plain("s_lshl_b32 {s}, {s}, 3", 1),
    plain("s_and_b32 {s}, {s}, {s}", 1),
    plain("s_cselect_b32 {s}, {s}, {s}", 1),
    plain("s_mov_b32 m0, {s}", 3),
    plain("s_mov_b32 m0, 0x{k}", 2),
    plain("s_mov_b32 vcc_lo, {s}", 1),
    plain("s_nop 2", 1),
    plain("s_delay_alu instid0(VALU_DEP_1)", 2),
    plain("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 4, 4), 0xf", 2),
    plain("s_sethalt 0", 1),
    // 64-bit and 32-bit reads of the scratch base.
    plain("v_add_nc_u64 {d2}, src_flat_scratch_base_lo, {b2}", 2),
    plain("v_add_nc_u64 {d2}, src_flat_scratch_base_hi, {b2}", 1),
    plain("v_lshlrev_b64 {d2}, 3, src_flat_scratch_base_lo", 1),
    plain("v_mov_b32 {d}, src_flat_scratch_base_lo", 1),
    plain("s_mov_b64 {t}, src_flat_scratch_base_lo", 1),
    // UE5M3.
    plain("v_cvt_pk_fp8_f32 {d}, {a}, {b} clamp", 3),
    plain("v_cvt_pk_fp8_f32 {d}, {a}, {b} op_sel:[0,0,1] clamp", 2),
    plain("v_cvt_pk_fp8_f32 {d}, -{a}, |{b}|", 1),
    plain("v_cvt_sr_fp8_f32 {d}, {a}, {b} byte_sel:2 clamp", 2),
    plain("v_cvt_sr_fp8_f32 {d}, {a}, {b} byte_sel:1", 1),
    plain("v_cvt_f32_fp8 {d}, {a} byte_sel:3 clamp", 2),
    plain("v_cvt_f32_fp8 {d}, {a} clamp", 2),
    // LDS at two addresses, by the number of the lane, and at one.
    memory("ds_load_2addr_b32 {d2}, {p} offset0:1 offset1:9", Lds, 4),
    memory("ds_load_2addr_b64 {d4}, {p} offset0:1 offset1:{x}", Lds, 3),
    memory("ds_load_2addr_stride64_b32 {d2}, {p} offset0:1 offset1:2", Lds, 2),
    memory("ds_load_2addr_stride64_b64 {d4}, {p} offset0:0 offset1:1", Lds, 2),
    memory("ds_store_2addr_b32 {p}, {b}, {c} offset0:1 offset1:9", Lds, 3),
    memory("ds_store_2addr_b64 {p}, {b2}, {c2} offset0:{x} offset1:9", Lds, 3),
    memory("ds_store_2addr_stride64_b32 {p}, {b}, {c} offset0:1 offset1:2", Lds, 2),
    memory("ds_storexchg_2addr_rtn_b32 {d2}, {p}, {b}, {c} offset0:1 offset1:{x}", Lds, 2),
    memory("ds_storexchg_2addr_rtn_b64 {d4}, {p}, {b2}, {c2} offset0:1 offset1:9", Lds, 1),
    memory("ds_load_addtid_b32 {d} offset:16", Lds, 3),
    memory("ds_store_addtid_b32 {b} offset:16", Lds, 3),
    memory("ds_load_b32 {d}, {p} offset:8", Lds, 2),
    memory("ds_load_b128 {d4}, {p} offset:16", Lds, 2),
    memory("ds_store_b64 {p}, {b2} offset:8", Lds, 2),
    memory("ds_add_u32 {p}, {b} offset:4", Lds, 1),
    // Vector memory.
    memory("global_load_b32 {d}, {p}, s[4:5]", Load, 3),
    memory("global_load_b128 {d4}, {p}, s[4:5] offset:16", Load, 2),
    memory("global_load_b64 {d2}, {q}, off", Load, 2),
    memory("global_load_b32 {d}, {p}, s[4:5] scope:SCOPE_DEV", Load, 1),
    memory("global_store_b32 {p}, {b}, s[4:5] offset:64", Store, 2),
    memory("global_store_b128 {p}, {b4}, s[4:5] offset:128", Store, 2),
    memory("cluster_load_b32 {d}, {p}, s[4:5]", Load, 3),
    memory("cluster_load_b64 {d2}, {p}, s[4:5] offset:8", Load, 2),
    memory("cluster_load_b128 {d4}, {q}, off offset:16", Load, 2),
    memory("cluster_load_async_to_lds_b32 {p}, {q}, off", Async, 1),
    memory("global_load_async_to_lds_b32 {p}, {q}, off", Async, 1),
    memory("tensor_load_to_lds s[8:11], s[12:19]", Tensor, 2),
    memory("s_load_b32 {s}, s[4:5], 0x{k}", Scalar, 2),
    // Matrix instructions.
    matrix("v_wmma_f32_16x16x4_f32 {d8}, {a2}, {b2}, {m8}", 1),
    matrix("v_wmma_f32_16x16x32_f16 {d8}, {a8}, {b8}, {m8}", 2),
    matrix("v_wmma_f32_16x16x64_fp8_bf8 {d8}, {a8}, {b8}, {m8}", 3),
    matrix("v_wmma_f16_16x16x64_fp8_fp8 {d4}, {a8}, {b8}, {m4}", 2),
    matrix("v_wmma_f32_16x16x128_fp8_bf8 {d8}, {a16}, {b16}, {m8}", 3),
    matrix("v_wmma_f32_16x16x128_bf8_bf8 {d8}, {a16}, {b16}, {m8} neg_lo:[0,0,1]", 1),
    matrix("v_wmma_f16_16x16x128_fp8_bf8 {d4}, {a16}, {b16}, {m4}", 3),
    matrix("v_wmma_f32_16x16x128_f8f6f4 {d8}, {a16}, {b16}, {m8}", 2),
    matrix("v_wmma_f32_16x16x128_f8f6f4 {d8}, {a8}, {b8}, {m8} matrix_a_fmt:MATRIX_FMT_FP4 matrix_b_fmt:MATRIX_FMT_FP4", 2),
    matrix("v_wmma_f32_16x16x128_f8f6f4 {d8}, {a16}, {b12}, {m8} matrix_a_fmt:MATRIX_FMT_BF8 matrix_b_fmt:MATRIX_FMT_FP6", 1),
    matrix("v_wmma_f32_32x16x128_f4 {d16}, {a16}, {b8}, {m16}", 3),
    matrix("v_wmma_scale_f32_16x16x128_f8f6f4 {d8}, {a16}, {b16}, {m8}, v40, v41", 2),
    matrix("v_wmma_scale_f32_16x16x128_f8f6f4 {d8}, {a16}, {b16}, {m8}, v40, src_flat_scratch_base_lo", 1),
    matrix("v_wmma_scale_f32_32x16x128_f4 {d16}, {a16}, {b8}, {m16}, v40, v41", 2),
    matrix("v_wmma_scale16_f32_16x16x128_f8f6f4 {d8}, {a16}, {b16}, {m8}, v[40:41], v[42:43]", 2),
    matrix("v_wmma_scale16_f32_16x16x128_f8f6f4 {d8}, {a16}, {b16}, {m8}, v[40:41], src_flat_scratch_base_lo", 1),
    matrix("v_wmma_scale16_f32_32x16x128_f4 {d16}, {a16}, {b8}, {m16}, v[40:41], v[42:43]", 1),
    matrix("v_wmma_i32_16x16x64_iu8 {d8}, {a8}, {b8}, {m8}", 2),
    matrix("v_swmmac_f32_16x16x64_f16 {d8}, {a8}, {b16}, {c}", 1),
    matrix("v_swmmac_i32_16x16x128_iu8 {d8}, {a8}, {b16}, {c2}", 1),
];

/// Members of clauses, by kind.
pub(super) const CLAUSES: [(&[&str], PendingKind); 3] = [
    (
        &[
            "global_load_b32 {d}, {p}, s[4:5]",
            "global_load_b64 {d2}, {p}, s[4:5] offset:8 scope:SCOPE_DEV",
            "global_load_b32 {d}, {p}, s[4:5] offset:4 scope:SCOPE_SYS",
            "cluster_load_b32 {d}, {p}, s[4:5] offset:12",
        ],
        Load,
    ),
    (
        &[
            "ds_load_b32 {d}, {p} offset:4",
            "ds_load_2addr_b32 {d2}, {p} offset0:3 offset1:9",
            "ds_load_2addr_b64 {d4}, {p} offset0:1 offset1:2",
            "ds_load_addtid_b32 {d} offset:32",
        ],
        Lds,
    ),
    (&["s_load_b32 {s}, s[4:5], 0x{k}", "s_load_b64 {t}, s[4:5], 0x10"], Scalar),
];
