// The size is too large: the function covers the next kernel, which nothing would keep at a multiple of 256 bytes.
.text
.p2align 8
.type helper,@function
helper:
  ds_load_2addr_b64 v[4:7], v1 offset0:1 offset1:3
  s_wait_dscnt 0x0
  s_set_pc_i64 s[30:31]
.globl k
.protected k
.p2align 8
.type k,@function
k:
  s_mov_b32 s4, 1
  v_mov_b32_e32 v0, s4
.Lin:
  s_endpgm
.size helper, .Lin-helper
.size k, .-k
.section .rodata,"a"
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 32
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
    .sgpr_count: 32
    .vgpr_count: 8
    .max_flat_workgroup_size: 64
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.version: [1, 2]
...
.end_amdgpu_metadata
