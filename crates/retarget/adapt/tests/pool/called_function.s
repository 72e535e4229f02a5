// A function that has to grow is called from unresolved code: a branch at its old position leads to it.
// kernels: odd, caller
// still: odd, caller
.globl odd
.p2align 8
.type odd,@function
odd:
s_get_pc_i64 s[4:5]
s_add_co_u32 s4, s4, s8
s_add_co_ci_u32 s5, s5, 0
s_set_pc_i64 s[4:5]
s_nop 1
s_endpgm
.Lodd_end:
.size odd, .Lodd_end-odd
.p2align 8
.type f,@function
f:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
s_get_pc_i64 s[6:7]
s_add_nc_u64 s[6:7], s[6:7], table@rel64+4
s_load_b32 s6, s[6:7], 0x0
s_wait_kmcnt 0x0
v_add_f32 v2, s6, v3
s_set_pc_i64 s[30:31]
.Lf_end:
.size f, .Lf_end-f
.globl caller
.p2align 8
.type caller,@function
caller:
s_get_pc_i64 s[4:5]
s_add_nc_u64 s[4:5], s[4:5], f@rel64+4
s_swap_pc_i64 s[30:31], s[4:5]
global_store_b32 v[4:5], v2, off
s_endpgm
.Lcaller_end:
.size caller, .Lcaller_end-caller
.rodata
.type table,@object
table:
.long 0x3f800000
.size table, 4
.text
