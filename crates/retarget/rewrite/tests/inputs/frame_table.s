// link --eh-frame-hdr
// show llvm-objdump -s -j .eh_frame_hdr f; llvm-dwarfdump --eh-frame f | grep FDE; llvm-readelf -sW f | grep FUNC
.cfi_sections .eh_frame
.text
.globl k
.protected k
.p2align 8
.type k,@function
k:
  .cfi_startproc
  s_mov_b32 s4, 1
  s_cbranch_scc1 .Lend
  v_mov_b32_e32 v0, s4
.Lend:
  s_endpgm
  .cfi_endproc
.size k, .-k
.p2align 6
.type g,@function
g:
  .cfi_startproc
  s_nop 3
  s_set_pc_i64 s[30:31]
  .cfi_endproc
.size g, .-g
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
