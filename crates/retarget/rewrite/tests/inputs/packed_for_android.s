// link --pack-dyn-relocs=android
.text
.globl k
.protected k
.p2align 8
.type k,@function
k:
  s_get_pc_i64 s[4:5]
  s_add_co_u32 s4, s4, table@rel32@lo+4
  s_add_co_ci_u32 s5, s5, table@rel32@hi+12
  s_load_b64 s[6:7], s[4:5], 0x8
  s_wait_kmcnt 0x0
  s_swap_pc_i64 s[30:31], s[6:7]
  s_endpgm
.size k, .-k
.p2align 6
.type g,@function
g:
  s_nop 3
  s_set_pc_i64 s[30:31]
.size g, .-g
.globl seen
.p2align 6
.type seen,@function
seen:
  s_nop 4
  s_set_pc_i64 s[30:31]
.size seen, .-seen
.section .data.rel.ro,"aw"
.p2align 3
.type table,@object
table:
  .quad k
  .quad g
  .quad 0
  .quad table+8
  .size table, .-table
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
