//! The instructions that a GPU is asked about: one table.
//!
//! A probe has the name of its instruction; names of one instruction in other generations follow, separated by `|`. Rows that
//! a processor does not have are not run there.
//!
//! Absent on purpose: instructions whose result is no function of their operands (counters, messages), products of matrices,
//! whose order of additions is not documented, and images.

use crate::inputs::InputSort;

/// How an instruction gets its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeKind {
    /// A vector instruction: numbers a, b and c are its sources, as far as it has them. Masks that it reads have the lanes
    /// whose c is negative; masks that it writes become the third word of the result.
    Vector,
    /// The same; the destination holds c before.
    Accumulate,
    /// A scalar instruction: a and b of one case in a wave; SCC is set before if c is not 0, and is the third word after.
    Scalar,
    /// An instruction of LDS that returns: the place holds b before; a and c are its data. The place is the
    /// third and fourth word.
    Lds,
    /// An atomic of global memory that returns: the place holds b before; a (and c) are its data. The place is the first
    /// and second word, the returned value the third and fourth.
    Atomic,
    /// A lane reads b of the lane whose number a states.
    Permute,
    /// A move between lanes by this control of DPP.
    Dpp(u16),
    /// A whole kernel of that name (`programs.rs`).
    Program,
}

/// How far a result may be from the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It must have the expected bits.
    Exact,
    /// Documented as an approximation: numbers of that many bits, at most that many units in the last place away.
    Within { bits: u8, units: u64 },
}

/// One instruction that is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// The part of the report that it belongs to; the probes of a group are kernels of one code object.
    pub group: &'static str,
    pub kind: ProbeKind,
    pub input: InputSort,
    pub judgement: Judgement,
    /// The names of its instruction.
    pub names: &'static str,
}

impl Probe {
    /// Its name: the first of the instruction's, with the control of DPP.
    pub fn name(&self) -> String {
        let first = self.names.split('|').next().unwrap_or(self.names);
        match self.kind {
            ProbeKind::Dpp(control) => format!("{first}_dpp_{control:03x}"),
            _ => first.to_owned(),
        }
    }
}

/// Several probes of one kind.
struct ProbeRow {
    group: &'static str,
    kind: ProbeKind,
    input: InputSort,
    judgement: Judgement,
    /// Their instructions, separated by spaces.
    instructions: &'static str,
}

const fn row(group: &'static str, kind: ProbeKind, input: InputSort, instructions: &'static str) -> ProbeRow {
    ProbeRow { group, kind, input, judgement: Judgement::Exact, instructions }
}

const fn near(bits: u8, units: u64, row: ProbeRow) -> ProbeRow {
    ProbeRow { judgement: Judgement::Within { bits, units }, ..row }
}

use InputSort::{Bits, Double, Half, Single};
use ProbeKind::{Accumulate, Atomic, Dpp, Lds, Permute, Program, Scalar, Vector};

#[rustfmt::skip]
const ROWS: &[ProbeRow] = &[
    row("integer", Vector, Bits, "v_add_u32|v_add_nc_u32 v_sub_u32|v_sub_nc_u32 v_subrev_u32|v_subrev_nc_u32 v_add_i32|v_add_nc_i32 \
        v_sub_i32|v_sub_nc_i32 v_mul_lo_u32 v_mul_hi_u32 v_mul_hi_i32 v_mul_i32_i24 v_mul_hi_i32_i24 v_mul_u32_u24 \
        v_mul_hi_u32_u24 v_mad_i32_i24 v_mad_u32_u24 v_add3_u32 v_lshl_add_u32 v_add_lshl_u32 v_xad_u32 v_min_i32 v_max_i32 \
        v_min_u32 v_max_u32 v_min3_i32 v_max3_i32 v_med3_i32 v_min3_u32 v_max3_u32 v_med3_u32 v_sad_u8 v_sad_hi_u8 v_sad_u16 \
        v_sad_u32 v_msad_u8 v_lerp_u8 v_dot4_u32_u8 v_dot8_u32_u4 v_dot4_i32_i8 v_dot2_u32_u16 v_dot2_i32_i16 v_dot8_i32_i4"),
    row("bits", Vector, Bits, "v_and_b32 v_or_b32 v_xor_b32 v_xnor_b32 v_not_b32 v_lshlrev_b32 v_lshrrev_b32 v_ashrrev_i32 v_lshlrev_b64 \
        v_lshrrev_b64 v_ashrrev_i64 v_bfe_u32 v_bfe_i32 v_bfi_b32 v_bfm_b32 v_alignbit_b32 v_alignbyte_b32 v_perm_b32 v_and_or_b32 \
        v_or3_b32 v_xor3_b32 v_lshl_or_b32 v_bfrev_b32 v_bcnt_u32_b32 v_ffbh_u32|v_clz_i32_u32 v_ffbl_b32|v_ctz_i32_b32 \
        v_ffbh_i32|v_cls_i32 v_cndmask_b32 v_mov_b32 v_mbcnt_lo_u32_b32 v_mbcnt_hi_u32_b32"),
    row("carry", Vector, Bits, "v_add_co_u32 v_sub_co_u32 v_subrev_co_u32 v_addc_co_u32|v_add_co_ci_u32 v_subb_co_u32|v_sub_co_ci_u32 \
        v_mad_u64_u32|v_mad_co_u64_u32 v_mad_i64_i32|v_mad_co_i64_i32"),
    row("compare", Vector, Bits, "v_cmp_lt_u32 v_cmp_eq_u32 v_cmp_le_u32 v_cmp_gt_u32 v_cmp_ne_u32 v_cmp_ge_u32 v_cmp_lt_i32 v_cmp_le_i32 \
        v_cmp_gt_i32 v_cmp_ge_i32 v_cmp_lt_u64 v_cmp_eq_u64 v_cmp_ge_i64 v_cmp_gt_i64 v_cmp_lt_u16 v_cmp_ge_i16"),
    row("compare", Vector, Single, "v_cmp_lt_f32 v_cmp_eq_f32 v_cmp_le_f32 v_cmp_gt_f32 v_cmp_lg_f32 v_cmp_ge_f32 v_cmp_o_f32 v_cmp_u_f32 \
        v_cmp_nlt_f32 v_cmp_neq_f32 v_cmp_nle_f32 v_cmp_ngt_f32 v_cmp_nlg_f32 v_cmp_nge_f32"),
    row("compare", Vector, Double, "v_cmp_lt_f64 v_cmp_eq_f64 v_cmp_u_f64 v_cmp_nge_f64"),
    row("compare", Vector, Half, "v_cmp_lt_f16 v_cmp_neq_f16 v_cmp_o_f16"),
    row("packed", Vector, Bits, "v_add_u16|v_add_nc_u16 v_sub_u16|v_sub_nc_u16 v_mul_lo_u16 v_lshlrev_b16 v_lshrrev_b16 v_ashrrev_i16 \
        v_min_i16 v_max_u16 v_mad_u16 v_mad_i16 v_pk_add_u16 v_pk_sub_i16 v_pk_mul_lo_u16 v_pk_mad_u16 v_pk_mad_i16 v_pk_lshlrev_b16 \
        v_pk_lshrrev_b16 v_pk_ashrrev_i16 v_pk_min_u16 v_pk_max_i16 v_pk_min_i16 v_pk_max_u16 v_pack_b32_f16 v_cvt_pk_u16_u32 \
        v_cvt_pk_i16_i32 v_mad_u32_u16 v_mad_i32_i16"),
    row("single", Vector, Single, "v_add_f32 v_sub_f32 v_subrev_f32 v_mul_f32 v_fma_f32 v_mad_f32 v_min_f32|v_min_num_f32 v_max_f32|v_max_num_f32 \
        v_med3_f32|v_med3_num_f32 v_min3_f32|v_min3_num_f32 v_max3_f32|v_max3_num_f32 v_floor_f32 v_ceil_f32 v_trunc_f32 v_rndne_f32 \
        v_fract_f32 v_frexp_mant_f32 v_frexp_exp_i32_f32 v_mul_legacy_f32|v_mul_dx9_zero_f32 v_div_fixup_f32 v_div_fmas_f32 \
        v_maximum_f32 v_minimum_f32"),
    row("single", Accumulate, Single, "v_fmac_f32 v_mac_f32"),
    row("single", Vector, Bits, "v_ldexp_f32"),
    row("double", Vector, Double, "v_add_f64 v_mul_f64 v_fma_f64 v_min_f64|v_min_num_f64 v_max_f64|v_max_num_f64 v_floor_f64 v_ceil_f64 \
        v_trunc_f64 v_rndne_f64 v_fract_f64 v_frexp_mant_f64 v_frexp_exp_i32_f64 v_div_fixup_f64 v_div_fmas_f64"),
    row("half", Vector, Half, "v_add_f16 v_sub_f16 v_mul_f16 v_fma_f16 v_min_f16|v_min_num_f16 v_max_f16|v_max_num_f16 v_floor_f16 v_ceil_f16 \
        v_trunc_f16 v_rndne_f16 v_fract_f16 v_frexp_mant_f16 v_frexp_exp_i16_f16 v_pk_add_f16 v_pk_mul_f16 v_pk_fma_f16 \
        v_pk_min_f16|v_pk_min_num_f16 v_pk_max_f16|v_pk_max_num_f16 v_med3_f16|v_med3_num_f16 v_dot2_f32_f16 v_fma_mix_f32 \
        v_div_fixup_f16"),
    row("convert", Vector, Single, "v_cvt_i32_f32 v_cvt_u32_f32 v_cvt_f16_f32 v_cvt_f64_f32 v_cvt_rpi_i32_f32|v_cvt_nearest_i32_f32 \
        v_cvt_flr_i32_f32|v_cvt_floor_i32_f32 v_cvt_pkrtz_f16_f32|v_cvt_pk_rtz_f16_f32 v_cvt_pknorm_i16_f32|v_cvt_pk_norm_i16_f32 \
        v_cvt_pknorm_u16_f32|v_cvt_pk_norm_u16_f32 v_cvt_pk_u8_f32"),
    row("convert", Vector, Bits, "v_cvt_f32_i32 v_cvt_f32_u32 v_cvt_f64_i32 v_cvt_f64_u32 v_cvt_f32_ubyte0 v_cvt_f32_ubyte1 v_cvt_f32_ubyte2 \
        v_cvt_f32_ubyte3 v_cvt_f16_u16 v_cvt_f16_i16 v_cvt_off_f32_i4"),
    row("convert", Vector, Half, "v_cvt_f32_f16 v_cvt_u16_f16 v_cvt_i16_f16"),
    row("convert", Vector, Double, "v_cvt_f32_f64 v_cvt_i32_f64 v_cvt_u32_f64"),
    near(32, 1, row("approximate", Vector, Single, "v_rcp_f32 v_rsq_f32 v_sqrt_f32 v_exp_f32 v_rcp_iflag_f32")),
    near(32, 4, row("approximate", Vector, Single, "v_log_f32")),
    near(16, 1, row("approximate", Vector, Half, "v_rcp_f16 v_rsq_f16 v_sqrt_f16 v_exp_f16 v_log_f16")),
    near(64, 1 << 30, row("approximate", Vector, Double, "v_rcp_f64 v_rsq_f64 v_sqrt_f64")),
    row("scalar", Scalar, Bits, "s_add_u32|s_add_co_u32 s_sub_u32|s_sub_co_u32 s_addc_u32|s_add_co_ci_u32 s_subb_u32|s_sub_co_ci_u32 \
        s_add_i32|s_add_co_i32 s_sub_i32|s_sub_co_i32 s_min_i32 s_max_i32 s_min_u32 s_max_u32 s_cselect_b32 s_cselect_b64 s_and_b32 \
        s_and_b64 s_or_b32 s_or_b64 s_xor_b32 s_xor_b64 s_andn2_b32|s_and_not1_b32 s_andn2_b64|s_and_not1_b64 s_orn2_b32|s_or_not1_b32 \
        s_nand_b32 s_nor_b32 s_xnor_b64 s_lshl_b32 s_lshl_b64 s_lshr_b32 s_lshr_b64 s_ashr_i32 s_ashr_i64 s_bfm_b32 s_mul_i32 \
        s_mul_hi_u32 s_mul_hi_i32 s_bfe_u32 s_bfe_i32 s_bfe_u64 s_bfe_i64 s_absdiff_i32 s_lshl1_add_u32 s_lshl4_add_u32 s_pack_ll_b32_b16 \
        s_pack_lh_b32_b16 s_pack_hh_b32_b16 s_mov_b32 s_mov_b64 s_cmov_b32 s_not_b32 s_not_b64 s_wqm_b32 s_brev_b32 s_brev_b64 \
        s_bcnt0_i32_b32 s_bcnt1_i32_b32 s_bcnt1_i32_b64 s_ff1_i32_b32|s_ctz_i32_b32 s_ff1_i32_b64|s_ctz_i32_b64 \
        s_flbit_i32_b32|s_clz_i32_u32 s_flbit_i32_b64|s_clz_i32_u64 s_flbit_i32|s_cls_i32 s_sext_i32_i8 s_sext_i32_i16 s_bitset0_b32 \
        s_bitset1_b32 s_abs_i32 s_cmp_eq_i32 s_cmp_lg_u32 s_cmp_gt_i32 s_cmp_ge_u32 s_cmp_lt_i32 s_cmp_le_u32 s_cmp_eq_u64 s_cmp_lg_u64 \
        s_bitcmp0_b32 s_bitcmp1_b32 s_bitcmp1_b64"),
    row("lds", Lds, Bits, "ds_add_rtn_u32 ds_sub_rtn_u32 ds_rsub_rtn_u32 ds_inc_rtn_u32 ds_dec_rtn_u32 ds_min_rtn_i32 ds_max_rtn_i32 \
        ds_min_rtn_u32 ds_max_rtn_u32 ds_and_rtn_b32 ds_or_rtn_b32 ds_xor_rtn_b32 ds_mskor_rtn_b32 ds_wrxchg_rtn_b32|ds_storexchg_rtn_b32 \
        ds_add_rtn_u64 ds_max_rtn_i64 ds_xor_rtn_b64 ds_cmpst_rtn_b32|ds_cmpstore_rtn_b32 ds_read_b32|ds_load_b32 ds_read_b64|ds_load_b64 \
        ds_read_i8|ds_load_i8 ds_read_u8|ds_load_u8 ds_read_i16|ds_load_i16 ds_read_u16|ds_load_u16 ds_read_u16_d16|ds_load_u16_d16 \
        ds_read_u16_d16_hi|ds_load_u16_d16_hi"),
    row("lds", Lds, Single, "ds_add_rtn_f32 ds_min_rtn_f32|ds_min_num_rtn_f32 ds_max_rtn_f32|ds_max_num_rtn_f32"),
    row("memory", Atomic, Bits, "global_atomic_add|global_atomic_add_u32 global_atomic_sub|global_atomic_sub_u32 \
        global_atomic_smin|global_atomic_min_i32 global_atomic_umax|global_atomic_max_u32 global_atomic_and|global_atomic_and_b32 \
        global_atomic_or|global_atomic_or_b32 global_atomic_xor|global_atomic_xor_b32 global_atomic_inc|global_atomic_inc_u32 \
        global_atomic_dec|global_atomic_dec_u32 global_atomic_swap|global_atomic_swap_b32 global_atomic_cmpswap|global_atomic_cmpswap_b32"),
    row("lanes", Permute, Bits, "ds_bpermute_b32"),
    row("lanes", Dpp(0x1b), Bits, "v_mov_b32"),
    row("lanes", Dpp(0x4e), Bits, "v_mov_b32"),
    row("lanes", Dpp(0x111), Bits, "v_mov_b32"),
    row("lanes", Dpp(0x104), Bits, "v_mov_b32"),
    row("lanes", Dpp(0x128), Bits, "v_mov_b32"),
    row("lanes", Dpp(0x140), Bits, "v_mov_b32"),
    row("lanes", Dpp(0x141), Bits, "v_mov_b32"),
    row("programs", Program, Bits, "collatz reverse sum histogram"),
];

/// All probes, in the order in which they are run.
pub fn all_probes() -> Vec<Probe> {
    let mut probes = Vec::new();
    for row in ROWS {
        let ProbeRow { group, kind, input, judgement, instructions } = *row;
        probes.extend(instructions.split_whitespace().map(|names| Probe { group, kind, input, judgement, names }));
    }
    probes
}

/// The groups, in their order.
pub fn all_groups() -> Vec<&'static str> {
    let mut groups: Vec<&'static str> = Vec::new();
    for row in ROWS {
        if !groups.contains(&row.group) {
            groups.push(row.group);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_probe_has_a_name_of_its_own() {
        let probes = all_probes();
        let names: BTreeSet<String> = probes.iter().map(Probe::name).collect();
        assert_eq!(names.len(), probes.len());
        assert!(probes.len() > 300, "{}", probes.len());
    }
}
