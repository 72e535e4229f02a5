// The kernel keeps v36 over its call of an unknown target: it knows more of the callee than LLVM would.
.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx1250"
.amdhsa_code_object_version 5
.text
.p2align 8
.type callee,@function
callee:
s_wait_loadcnt_dscnt 0x0
s_wait_kmcnt 0x0
v_cvt_f32_fp8 v0, v1 clamp
v_add_f32 v0, v0, v2
v_add_f32 v0, v0, v3
s_set_pc_i64 s[30:31]
.Lcallee_end:
.size callee, .Lcallee_end-callee
.globl k
.p2align 8
.type k,@function
k:
s_load_b64 s[4:5], s[2:3], 0x0
s_wait_kmcnt 0x0
v_mov_b32 v36, v0
s_swap_pc_i64 s[30:31], s[4:5]
v_add_f32 v0, v0, v36
global_store_b32 v[2:3], v0, off
s_endpgm
.Lk_end:
.size k, .Lk_end-k
.globl other
.p2align 8
.type other,@function
other:
v_mov_b32 v0, 0
s_endpgm
.Lother_end:
.size other, .Lother_end-other
.data
table:
.quad callee
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_next_free_vgpr 64
.amdhsa_next_free_sgpr 40
.amdhsa_inst_pref_size 1
.end_amdhsa_kernel
.p2align 6
.amdhsa_kernel other
.amdhsa_next_free_vgpr 8
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
    .vgpr_count: 64
    .max_flat_workgroup_size: 256
  - .name: other
    .symbol: other.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 42
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1250
amdhsa.version:
  - 1
  - 2
...
.end_amdgpu_metadata
