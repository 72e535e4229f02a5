// A function that is called from another section of the same file (-ffunction-sections): LLVM
// looks into callees, so the caller keeps values in registers that this one does not write, here
// v32 to v35 and s16. Only registers that the function itself writes are free: v48 to v50, s20.
.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx1250"
.amdhsa_code_object_version 5
.section .text.callee,"ax",@progbits
.p2align 8
.type callee,@function
callee:
s_wait_loadcnt_dscnt 0x0
s_wait_kmcnt 0x0
v_mov_b32 v49, v5
v_mov_b32 v50, v5
s_mov_b32 s20, 0
v_mov_b32 v48, v5
v_cvt_f32_fp8 v4, v48 clamp
s_set_pc_i64 s[30:31]
.Lcallee_end:
.size callee, .Lcallee_end-callee
.section .text.k,"ax",@progbits
.globl k
.p2align 8
.type k,@function
k:
s_load_b32 s16, s[2:3], 0x0
v_mov_b32 v32, v0
v_mov_b32 v33, v0
v_mov_b32 v34, v0
v_mov_b32 v35, v0
s_get_pc_i64 s[4:5]
s_add_nc_u64 s[4:5], s[4:5], callee@rel64+4
s_swap_pc_i64 s[30:31], s[4:5]
global_store_b128 v[2:3], v[32:35], off
v_add_nc_u32 v4, s16, v4
global_store_b32 v[2:3], v4, off offset:32
s_endpgm
.Lk_end:
.size k, .Lk_end-k
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_next_free_vgpr 56
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
    .vgpr_count: 56
    .max_flat_workgroup_size: 256
amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1250
amdhsa.version:
  - 1
  - 2
...
.end_amdgpu_metadata
