// target gfx90a
// link
// edit 28
.text
.globl k
.protected k
.p2align 8
.type k,@function
k:
  s_getpc_b64 s[4:5]
.Lget:
  s_add_i32 s6, .Lfar-.Lget-4, 4
  s_add_u32 s4, s4, s6
  s_addc_u32 s5, s5, 0
  s_setpc_b64 s[4:5]
  .fill 4, 4, 0xbf800000
.Lfar:
  s_nop 2
  s_getpc_b64 s[4:5]
.Lpost2:
  s_add_i32 s6, k-.Lpost2, 0
  s_abs_i32 s6, s6
  s_sub_u32 s4, s4, s6
  s_subb_u32 s5, s5, 0
  s_setpc_b64 s[4:5]
.size k, .-k
.section .rodata,"a"
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 8
  .amdhsa_accum_offset 4
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
amdhsa.target: amdgcn-amd-amdhsa--gfx90a
amdhsa.version: [1, 2]
...
.end_amdgpu_metadata
