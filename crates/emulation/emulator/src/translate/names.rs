//! The plan for each mnemonic.
//!
//! Invariants: the table is made once; after that a mnemonic costs one look-up for each decoded instruction.

use super::MnemonicPlan;
use crate::execute::packed as execute_packed;
use crate::execute::{InstHandler, control, cross_lane, float8, hardware, lds, lookup, mixed, no_effect, scalar};
use crate::memory_operation;
use foldhash::HashMap;
use hotswap_isa::TableEntry;
use std::sync::OnceLock;

#[rustfmt::skip]
const HANDLERS: &[(&str, InstHandler)] = &[
    ("s_branch", control::branch_always),
    ("s_cbranch_scc0", control::branch_scc0),
    ("s_cbranch_scc1", control::branch_scc1),
    ("s_cbranch_vccz", control::branch_vccz),
    ("s_cbranch_vccnz", control::branch_vccnz),
    ("s_cbranch_execz", control::branch_execz),
    ("s_cbranch_execnz", control::branch_execnz),
    ("s_getpc_b64", control::get_pc),
    ("s_get_pc_i64", control::get_pc),
    ("s_setpc_b64", control::set_pc),
    ("s_set_pc_i64", control::set_pc),
    ("s_swappc_b64", control::swap_pc),
    ("s_swap_pc_i64", control::swap_pc),
    ("s_add_pc_i64", control::add_pc),
    ("s_call_b64", control::call_relative),
    ("s_call_i64", control::call_relative),
    ("s_endpgm", control::end_program),
    ("s_endpgm_saved", control::end_program),
    ("s_sleep", control::sleep),
    ("s_sleep_var", control::sleep),
    ("s_monitor_sleep", control::sleep),
    ("s_trap", control::raise_trap),
    ("s_barrier", control::signal_and_wait),
    ("s_barrier_signal", control::barrier_signal),
    ("s_barrier_signal_isfirst", control::barrier_signal_isfirst),
    ("s_barrier_wait", control::barrier_wait),
    ("s_sendmsg", control::send_message),
    ("s_sendmsg_rtn_b32", control::send_message_returning),
    ("s_sendmsg_rtn_b64", control::send_message_returning),
    ("s_getreg_b32", hardware::get_register),
    ("s_setreg_b32", hardware::set_register),
    ("s_setreg_imm32_b32", hardware::set_register),
    ("s_set_vgpr_msb", hardware::set_banks),
    ("s_set_gpr_idx_on", hardware::index_on),
    ("s_set_gpr_idx_off", hardware::index_off),
    ("s_set_gpr_idx_idx", hardware::index_set),
    ("s_set_gpr_idx_mode", hardware::index_mode),
    ("s_round_mode", hardware::set_rounding),
    ("s_denorm_mode", hardware::set_denormals),
    ("s_memtime", hardware::read_cycles),
    ("s_get_shader_cycles_u64", hardware::read_cycles),
    ("s_memrealtime", hardware::read_realtime),
    ("s_movrels_b32", scalar::move_relative_source),
    ("s_movrels_b64", scalar::move_relative_source),
    ("s_movreld_b32", scalar::move_relative_target),
    ("s_movreld_b64", scalar::move_relative_target),
    ("v_readfirstlane_b32", cross_lane::read_first_lane),
    ("v_readlane_b32", cross_lane::read_lane),
    ("v_writelane_b32", cross_lane::write_lane),
    ("v_mbcnt_lo_u32_b32", cross_lane::count_below_low),
    ("v_mbcnt_hi_u32_b32", cross_lane::count_below_high),
    ("v_permlane16_b32", cross_lane::permute_row),
    ("v_permlanex16_b32", cross_lane::permute_row_crossed),
    ("v_permlane16_var_b32", cross_lane::permute_row_variable),
    ("v_permlanex16_var_b32", cross_lane::permute_row_crossed_variable),
    ("v_permlane64_b32", cross_lane::exchange_halves),
    ("v_swap_b32", cross_lane::swap_registers),
    ("v_swap_b16", cross_lane::swap_halves),
    ("v_movrels_b32", cross_lane::move_relative_source),
    ("v_movreld_b32", cross_lane::move_relative_target),
    ("v_movrelsd_2_b32", cross_lane::move_relative_both),
    ("ds_bpermute_b32", cross_lane::permute_backward),
    ("ds_bpermute_fi_b32", cross_lane::permute_backward),
    ("ds_permute_b32", cross_lane::permute_forward),
    ("ds_swizzle_b32", cross_lane::swizzle_lanes),
    ("ds_append", lds::append_or_consume),
    ("ds_consume", lds::append_or_consume),
    ("ds_read_addtid_b32", lds::by_lane),
    ("ds_load_addtid_b32", lds::by_lane),
    ("ds_write_addtid_b32", lds::by_lane),
    ("ds_store_addtid_b32", lds::by_lane),
    ("ds_gws_init", lds::initialise_global_barrier),
    ("ds_gws_barrier", lds::global_barrier),
    ("v_pk_mov_b32", execute_packed::move_pair),
    ("v_fma_mix_f32", mixed::mixed_f32),
    ("v_mad_mix_f32", mixed::mixed_f32),
    ("v_fma_mixlo_f16", mixed::mixed_f16),
    ("v_fma_mixhi_f16", mixed::mixed_f16),
    ("v_mad_mixlo_f16", mixed::mixed_f16),
    ("v_mad_mixhi_f16", mixed::mixed_f16),
    ("v_fma_mix_f32_bf16", mixed::mixed_f32_bf16),
    ("v_fma_mixlo_bf16", mixed::mixed_bf16),
    ("v_fma_mixhi_bf16", mixed::mixed_bf16),
    ("v_cvt_f32_fp8", float8::widen_one),
    ("v_cvt_f32_bf8", float8::widen_one),
    ("v_cvt_f16_fp8", float8::widen_one),
    ("v_cvt_f16_bf8", float8::widen_one),
    ("v_cvt_pk_f32_fp8", float8::widen_pair),
    ("v_cvt_pk_f32_bf8", float8::widen_pair),
    ("v_cvt_pk_f16_fp8", float8::widen_halves),
    ("v_cvt_pk_f16_bf8", float8::widen_halves),
    ("v_cvt_pk_fp8_f32", float8::narrow_pair),
    ("v_cvt_pk_bf8_f32", float8::narrow_pair),
    ("v_cvt_pk_fp8_f16", float8::narrow_halves),
    ("v_cvt_pk_bf8_f16", float8::narrow_halves),
    ("v_dot4_i32_iu8", mixed::bytes_product),
    ("v_dot8_i32_iu4", mixed::nibbles_product),
    ("v_bitop3_b32", mixed::combine_words),
    ("v_bitop3_b16", mixed::combine_halves),
    ("v_perm_pk16_b4_u4", lookup::look_up_nibbles),
    ("v_perm_pk16_b6_u4", lookup::look_up_sixes),
    ("v_perm_pk16_b8_u4", lookup::look_up_bytes),
];

/// Accesses of two places of LDS.
#[rustfmt::skip]
const TWO_ADDRESSES: &[(&str, InstHandler)] = &[
    ("ds_read2_b32", lds::load_two), ("ds_read2_b64", lds::load_two),
    ("ds_read2st64_b32", lds::load_two), ("ds_read2st64_b64", lds::load_two),
    ("ds_load_2addr_b32", lds::load_two), ("ds_load_2addr_b64", lds::load_two),
    ("ds_load_2addr_stride64_b32", lds::load_two), ("ds_load_2addr_stride64_b64", lds::load_two),
    ("ds_write2_b32", lds::store_two), ("ds_write2_b64", lds::store_two),
    ("ds_write2st64_b32", lds::store_two), ("ds_write2st64_b64", lds::store_two),
    ("ds_store_2addr_b32", lds::store_two), ("ds_store_2addr_b64", lds::store_two),
    ("ds_store_2addr_stride64_b32", lds::store_two), ("ds_store_2addr_stride64_b64", lds::store_two),
    ("ds_wrxchg2_rtn_b32", lds::exchange_two), ("ds_wrxchg2_rtn_b64", lds::exchange_two),
    ("ds_wrxchg2st64_rtn_b32", lds::exchange_two), ("ds_wrxchg2st64_rtn_b64", lds::exchange_two),
    ("ds_storexchg_2addr_rtn_b32", lds::exchange_two), ("ds_storexchg_2addr_rtn_b64", lds::exchange_two),
    ("ds_storexchg_2addr_stride64_rtn_b32", lds::exchange_two), ("ds_storexchg_2addr_stride64_rtn_b64", lds::exchange_two),
];

/// Waits, hints and caches: memory is always up to date here.
#[rustfmt::skip]
const WITHOUT_EFFECT: &[&str] = &[
    "s_nop", "v_nop", "ds_nop", "v_pipeflush", "v_clrexcp",
    "s_waitcnt", "s_waitcnt_depctr", "s_waitcnt_expcnt", "s_waitcnt_lgkmcnt", "s_waitcnt_vmcnt", "s_waitcnt_vscnt",
    "s_wait_alu", "s_wait_asynccnt", "s_wait_bvhcnt", "s_wait_dscnt", "s_wait_event", "s_wait_expcnt", "s_wait_idle",
    "s_wait_kmcnt", "s_wait_loadcnt", "s_wait_loadcnt_dscnt", "s_wait_samplecnt", "s_wait_storecnt",
    "s_wait_storecnt_dscnt", "s_wait_tensorcnt", "s_wait_xcnt",
    "s_clause", "s_delay_alu", "s_inst_prefetch", "s_set_inst_prefetch_distance", "s_setprio", "s_setprio_inc_wg",
    "s_icache_inv", "s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol", "s_dcache_wb_vol", "s_gl1_inv",
    "buffer_gl0_inv", "buffer_gl1_inv", "buffer_wbl2", "buffer_inv", "buffer_invl2", "buffer_wbinvl1", "buffer_wbinvl1_vol",
    "global_inv", "global_wb", "global_wbinv", "global_prefetch_b8", "flat_prefetch_b8",
    "s_prefetch_inst", "s_prefetch_inst_pc_rel", "s_prefetch_data", "s_prefetch_data_pc_rel", "s_buffer_prefetch_data",
    "s_incperflevel", "s_decperflevel", "s_ttracedata", "s_ttracedata_imm", "s_wakeup", "s_version", "s_sethalt",
];

/// The plan for a mnemonic; `None` for those that the emulator does not know.
pub(super) fn find_plan(mnemonic: &str) -> Option<MnemonicPlan> {
    static PLANS: OnceLock<HashMap<&'static str, MnemonicPlan>> = OnceLock::new();
    PLANS.get_or_init(build_plans).get(mnemonic).copied()
}

fn build_plans() -> HashMap<&'static str, MnemonicPlan> {
    let mut plans = HashMap::default();
    for name in TableEntry::all_entries().map(TableEntry::mnemonic) {
        if plans.contains_key(name) {
            continue;
        }
        if let Some(plan) = make_plan(name) {
            plans.insert(name, plan);
        }
    }
    plans
}

fn make_plan(name: &str) -> Option<MnemonicPlan> {
    let in_table =
        |table: &[(&str, InstHandler)]| table.iter().find(|(found, _)| *found == name).map(|(_, handler)| *handler);
    if WITHOUT_EFFECT.contains(&name) {
        return Some(MnemonicPlan::Handler(no_effect));
    }
    in_table(HANDLERS)
        .map(MnemonicPlan::Handler)
        .or_else(|| in_table(TWO_ADDRESSES).map(MnemonicPlan::TwoAddresses))
        .or_else(|| memory_operation::of_mnemonic(name).map(MnemonicPlan::Access))
        .or_else(|| memory_operation::of_copy(name).map(MnemonicPlan::Asynchronous))
        .or_else(|| hotswap_semantics::matrix_row(name).map(MnemonicPlan::Matrix))
        .or_else(|| hotswap_semantics::find_meaning(name).map(MnemonicPlan::Meaning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_the_tables_are_instructions() {
        let known: BTreeSet<&str> = TableEntry::all_entries().map(TableEntry::mnemonic).collect();
        let tables = HANDLERS.iter().chain(TWO_ADDRESSES).map(|(name, _)| *name).chain(WITHOUT_EFFECT.iter().copied());
        for name in tables {
            assert!(known.contains(name), "{name} is no instruction");
        }
    }
}
