// The callee waits for nothing, its caller has: registers never read are free, except those that loads still write.
.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx1250"
.amdhsa_code_object_version 5
.text
.globl quiet
.p2align 8
.type quiet,@function
quiet:
s_get_pc_i64 s[4:5]
s_add_nc_u64 s[4:5], s[4:5], callee@rel64+4
s_swap_pc_i64 s[30:31], s[4:5]
s_endpgm
.Lquiet_end:
.size quiet, .Lquiet_end-quiet
.p2align 8
.type callee,@function
callee:
s_cbranch_scc1 .Lout
v_mov_b32 v20, 0
v_cvt_f32_fp8_e64 v5, v6 byte_sel:1 clamp
ds_store_2addr_b32 v1, v2, v3 offset1:9
cluster_load_b32 v20, v[2:3], off
s_wait_loadcnt 0x0
.Lout:
v_mov_b32 v20, 1
s_set_pc_i64 s[30:31]
.Lcallee_end:
.size callee, .Lcallee_end-callee
.globl loud
.p2align 8
.type loud,@function
loud:
s_cbranch_scc0 .Lback
.Lagain:
s_get_pc_i64 s[4:5]
s_add_nc_u64 s[4:5], s[4:5], callee@rel64+4
s_swap_pc_i64 s[30:31], s[4:5]
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
s_sub_co_u32 s0, s0, 1
s_cbranch_scc1 .Lagain
.Lback:
s_endpgm
.Lloud_end:
.size loud, .Lloud_end-loud
.rodata
.p2align 6
.amdhsa_kernel quiet
.amdhsa_next_free_vgpr 24
.amdhsa_next_free_sgpr 40
.amdhsa_inst_pref_size 1
.end_amdhsa_kernel
.p2align 6
.amdhsa_kernel loud
.amdhsa_next_free_vgpr 24
.amdhsa_next_free_sgpr 40
.amdhsa_inst_pref_size 1
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.kernels:
  - .name: quiet
    .symbol: quiet.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 42
    .vgpr_count: 24
    .max_flat_workgroup_size: 256
  - .name: loud
    .symbol: loud.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 42
    .vgpr_count: 24
    .max_flat_workgroup_size: 256
amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1250
amdhsa.version:
  - 1
  - 2
...
.end_amdgpu_metadata
