// relocatable: refused
// A function that one kernel calls directly and another one by an address that two branches choose. The first keeps all
// vector registers over the call but v40 to v47; the second keeps these, as LLVM's calling convention lets it.
.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx1250"
.amdhsa_code_object_version 5
.text
.p2align 8
.type callee,@function
callee:
s_wait_loadcnt_dscnt 0x0
s_wait_kmcnt 0x0
v_cvt_f32_fp8 v4, v5 clamp
s_set_pc_i64 s[30:31]
.size callee, .-callee
.type other,@function
other:
s_wait_loadcnt_dscnt 0x0
s_wait_kmcnt 0x0
s_set_pc_i64 s[30:31]
.size other, .-other
.globl direct
.p2align 8
.type direct,@function
direct:
s_get_pc_i64 s[4:5]
s_add_nc_u64 s[4:5], s[4:5], callee@rel64+4
s_swap_pc_i64 s[30:31], s[4:5]
global_store_b128 v[2:3], v[0:3], off offset:0
global_store_b128 v[2:3], v[4:7], off offset:16
global_store_b128 v[2:3], v[8:11], off offset:32
global_store_b128 v[2:3], v[12:15], off offset:48
global_store_b128 v[2:3], v[16:19], off offset:64
global_store_b128 v[2:3], v[20:23], off offset:80
global_store_b128 v[2:3], v[24:27], off offset:96
global_store_b128 v[2:3], v[28:31], off offset:112
global_store_b128 v[2:3], v[32:35], off offset:128
global_store_b128 v[2:3], v[36:39], off offset:144
global_store_b128 v[2:3], v[48:51], off offset:192
global_store_b128 v[2:3], v[52:55], off offset:208
s_endpgm
.size direct, .-direct
.globl chosen
.p2align 8
.type chosen,@function
chosen:
s_load_b32 s0, s[2:3], 0x0
v_mov_b32 v40, v0
v_mov_b32 v41, v0
v_mov_b32 v42, v0
v_mov_b32 v43, v0
s_wait_kmcnt 0x0
s_cmp_eq_u32 s0, 0
s_cbranch_scc1 .Lother
s_get_pc_i64 s[4:5]
s_add_nc_u64 s[4:5], s[4:5], callee@rel64+4
s_branch .Lcall
.Lother:
s_get_pc_i64 s[4:5]
s_add_nc_u64 s[4:5], s[4:5], other@rel64+4
.Lcall:
s_swap_pc_i64 s[30:31], s[4:5]
global_store_b128 v[2:3], v[40:43], off
global_store_b32 v[2:3], v4, off offset:32
s_endpgm
.size chosen, .-chosen
.rodata
.p2align 6
.amdhsa_kernel direct
.amdhsa_next_free_vgpr 56
.amdhsa_next_free_sgpr 40
.amdhsa_inst_pref_size 1
.end_amdhsa_kernel
.amdhsa_kernel chosen
.amdhsa_next_free_vgpr 56
.amdhsa_next_free_sgpr 40
.amdhsa_inst_pref_size 1
.end_amdhsa_kernel

.amdgpu_metadata
---
amdhsa.kernels:
  - .name: direct
    .symbol: direct.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 42
    .vgpr_count: 56
    .max_flat_workgroup_size: 256
  - .name: chosen
    .symbol: chosen.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 42
    .vgpr_count: 56
    .max_flat_workgroup_size: 256
amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1250
amdhsa.version:
  - 1
  - 2
...
.end_amdgpu_metadata
