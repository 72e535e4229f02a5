// Replaced, inserted and kept instructions in a loop, under a clause, with banks.
.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx1250"
.amdhsa_code_object_version 5
.text
.globl k
.p2align 8
.type k,@function
k:
s_cbranch_scc1 .Lend
.Lloop:
s_clause 0x1
global_load_b32 v10, v[2:3], off
cluster_load_b32 v11, v[2:3], off
s_wait_loadcnt 0x0
v_wmma_f32_16x16x128_fp8_fp8 v[32:39], v[0:15], v[16:31], v[32:39]
s_set_vgpr_msb 0x40
ds_load_2addr_b32 v[0:1], v1 offset1:7
s_set_vgpr_msb 0x4000
s_wait_dscnt 0x0
v_add_f32 v10, v10, v32
s_sub_co_u32 s0, s0, 1
s_mov_b32 s5, m0
s_cbranch_scc1 .Lloop
.Lend:
s_endpgm
.Lk_end:
.size k, .Lk_end-k
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_next_free_vgpr 300
.amdhsa_next_free_sgpr 40
.amdhsa_inst_pref_size 1
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 42
    .vgpr_count: 300
    .max_flat_workgroup_size: 256
amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1250
amdhsa.version:
  - 1
  - 2
...
.end_amdgpu_metadata
