//! One file for each family of `patches.def`.

mod barriers;
mod block16_conversion;
mod clause_scope;
mod cluster_load;
mod ds_addtid;
mod ds_two_address;
mod e5m3_conversion;
mod f8f6f4_wrap;
mod flat_scratch_base;
mod machine_flags;
mod mode_setreg;
mod oclc_isa_version;
mod target_note;
mod tensor_mask;
mod user_sgpr_count;
mod vop3px2_src2;
mod wmma_hazard;
mod wmma_split;
mod wmma_wait;
