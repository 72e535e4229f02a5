// Tables between the instructions whose words decode as branches, with a type and a
// size, and without: data is unchanged, and so are its zeros at the end of the section.
.amdgcn_target "amdgcn-amd-amdhsa--gfx1250"
.amdhsa_code_object_version 6
.text
.globl k
.p2align 8
.type k,@function
k:
s_branch .Lbehind
.type inside,@object
inside:
.long 0xbfa00003, 0xbfa00004, 0xbfa1fff0
.size inside,.-inside
.Lbehind:
s_get_pc_i64 s[4:5]
s_add_co_u32 s4, s4, untyped@rel32@lo+4
s_add_co_ci_u32 s5, s5, untyped@rel32@hi+12
s_load_b32 s6, s[4:5], 0x0
s_get_pc_i64 s[8:9]
s_add_co_u32 s8, s8, typed@rel32@lo+4
s_add_co_ci_u32 s9, s9, typed@rel32@hi+12
s_load_b32 s7, s[8:9], 0x0
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
s_wait_kmcnt 0x0
v_mov_b32 v6, s6
v_mov_b32 v7, s7
global_store_b128 v[4:5], v[2:5], off
global_store_b64 v[4:5], v[6:7], off
s_endpgm
.size k,.-k
untyped:
.long 0xbfa0ffe6, 0xbfa0ffe5, 0xbfa0ffe4, 0
.p2align 4
.type second,@function
second:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
global_store_b64 v[4:5], v[2:3], off
s_endpgm
.size second,.-second
.type typed,@object
typed:
.long 0xbfa0fff6, 7, 0, 0, 0, 0
.size typed,.-typed
.section .rodata,"a",@progbits
.p2align 6
.amdhsa_kernel k
.amdhsa_next_free_vgpr 16
.amdhsa_next_free_sgpr 16
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 0
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 32
    .sgpr_count: 16
    .vgpr_count: 16
    .max_flat_workgroup_size: 64
...
.end_amdgpu_metadata
