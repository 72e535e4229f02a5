// A jump table, with sites before the jump, at its targets and after them.
.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx1250"
.amdhsa_code_object_version 5
.text
.globl k
.p2align 8
.type k,@function
k:
s_get_pc_i64 s[6:7]
s_add_nc_u64 s[6:7], s[6:7], table@rel64+4
s_load_b64 s[4:5], s[6:7], s8
ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
s_wait_dscnt 0x0
s_wait_kmcnt 0x0
s_set_pc_i64 s[4:5]
.Lone:
ds_load_2addr_b32 v[2:3], v0 offset0:5 offset1:40
s_wait_dscnt 0x0
.Ltwo:
global_store_b64 v1, v[2:3], s[2:3]
.Lthree:
s_endpgm
.Lk_end:
.size k, .Lk_end-k
.section .data.rel.ro,"aw"
.p2align 3
table:
.quad .Lone, .Ltwo, .Lthree
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
