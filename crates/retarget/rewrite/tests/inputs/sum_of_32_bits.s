// link
// edit 16
.text
.globl k
.protected k
.p2align 8
.type k,@function
k:
  s_get_pc_i64 s[4:5]
.Lbase:
  s_add_nc_u64 s[4:5], s[4:5], 0x48
  s_set_pc_i64 s[4:5]
  .fill 15, 4, 0xbf800000
.Lahead:
  s_get_pc_i64 s[4:5]
  s_add_nc_u64 s[4:5], 0x70, s[4:5]
  s_set_pc_i64 s[4:5]
  .fill 25, 4, 0xbf800000
  s_endpgm
.size k, .-k
.section .rodata,"a"
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 8
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
    .wavefront_size: 32
    .sgpr_count: 12
    .vgpr_count: 8
    .max_flat_workgroup_size: 64
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.version: [1, 2]
...
.end_amdgpu_metadata
