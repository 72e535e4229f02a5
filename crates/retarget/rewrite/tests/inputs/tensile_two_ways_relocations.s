// link --emit-relocs
// edit 0xa8
.if .amdgcn.gfx_generation_number >= 12
.macro getpc d
  s_get_pc_i64 s[\d:\d+1]
.endm
.macro setpc d
  s_set_pc_i64 s[\d:\d+1]
.endm
.else
.macro getpc d
  s_getpc_b64 s[\d:\d+1]
.endm
.macro setpc d
  s_setpc_b64 s[\d:\d+1]
.endm
.endif
.macro either label
  getpc 4
  s_add_i32 s6, \label, 4
  s_cmp_ge_i32 s6, 0
  s_cbranch_scc1 positive\@
  s_abs_i32 s6, s6
  s_sub_u32 s4, s4, s6
  s_subb_u32 s5, s5, 0
  setpc 4
positive\@:
  s_add_u32 s4, s4, s6
  s_addc_u32 s5, s5, 0
  setpc 4
.endm
.macro ahead label
  getpc 4
  s_add_i32 s6, \label, 4
  s_add_u32 s4, s4, s6
  s_addc_u32 s5, s5, 0
  setpc 4
.endm
.macro back label
  getpc 4
  s_add_i32 s6, \label, 4
  s_abs_i32 s6, s6
  s_sub_u32 s4, s4, s6
  s_subb_u32 s5, s5, 0
  setpc 4
.endm
.text
.globl k
.protected k
.p2align 8
.type k,@function
k:
  s_nop 0
.Lloop:
  s_cbranch_scc1 .Lno_1
  either .Ldone
.Lno_1:
  s_cbranch_scc0 .Lno_2
  ahead .Ldone
.Lno_2:
  s_cbranch_vccz .Lno_3
  back .Lloop
.Lno_3:
  s_cbranch_scc0 .Lno_4
  either .Lloop
.Lno_4:
  s_nop 1
.Ldone:
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
