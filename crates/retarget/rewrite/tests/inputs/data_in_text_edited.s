// target gfx90a
// link
// edit 44
.text
.globl k
.protected k
.p2align 8
.type k,@function
k:
  s_getpc_b64 s[4:5]
.Lpc:
  s_add_u32 s4, s4, .Ltable-.Lpc
  s_addc_u32 s5, s5, 0
  s_load_dword s6, s[4:5], 0x8
  s_waitcnt lgkmcnt(0)
  s_cbranch_scc1 .Lend
  s_endpgm
.Ltable:
  .long 0xbf820002, 0, 0, 0xbf82fff0
.Lend:
  s_endpgm
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
