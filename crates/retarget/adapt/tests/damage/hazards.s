// Three more vector instructions are needed before the sum.
.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx1250"
.amdhsa_code_object_version 5
.text
.globl k
.p2align 8
.type k,@function
k:
v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[8:15], v[16:23], v[0:7]
v_mov_b32 v41, v40
v_add_f32 v42, v0, v43
s_endpgm
.Lk_end:
.size k, .Lk_end-k
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_next_free_vgpr 64
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
amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1250
amdhsa.version:
  - 1
  - 2
...
.end_amdgpu_metadata
