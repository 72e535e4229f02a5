; A kernel for gfx1011 with holes: BODY is its code, AFTER what follows it.
.amdgcn_target "amdgcn-amd-amdhsa--gfx1011"
.text
.globl k
.p2align 8
.type k,@function
k:
  v_mov_b32 v0, 1
  BODY
  s_endpgm
.Lend:
.size k, .Lend-k
AFTER
.fill 16, 4, 0xbf9f0000
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 8
  .amdhsa_wavefront_size32 1
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1011
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 8
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
...
.end_amdgpu_metadata
