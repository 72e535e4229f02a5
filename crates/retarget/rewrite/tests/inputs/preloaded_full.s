// target gfx942
// link
.text
.globl k
.protected k
.p2align 8
.type k,@function
k:
  s_load_dwordx2 s[8:9], s[4:5], 0x0
  s_branch .Lsecond
  .fill 61, 4, 0xbf800001
.Lsecond:
  s_endpgm
.size k, .-k
.section .rodata,"a"
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 8
  .amdhsa_accum_offset 4
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_user_sgpr_kernarg_preload_length 2
  .amdhsa_next_free_sgpr 12
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_align: 8
    .kernarg_segment_size: 0
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 12
    .vgpr_count: 8
    .max_flat_workgroup_size: 64
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.version: [1, 2]
...
.end_amdgpu_metadata
