// A literal in the code of one section is the address of a function in another one; both grow, the literal moves.
.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx1250"
.amdhsa_code_object_version 5
.section .text.k,"ax",@progbits
.globl k
.p2align 8
.type k,@function
k:
ds_load_2addr_b32 v[2:3], v0 offset0:5 offset1:40
s_wait_dscnt 0x0
s_mov_b64 s[20:21], f@abs64
s_swap_pc_i64 s[30:31], s[20:21]
s_endpgm
.Lk_end:
.size k, .Lk_end-k
.section .text.f,"ax",@progbits
.p2align 8
.type f,@function
f:
ds_load_2addr_b32 v[2:3], v0 offset0:5 offset1:40
s_wait_dscnt 0x0
s_set_pc_i64 s[30:31]
.size f, .-f
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
