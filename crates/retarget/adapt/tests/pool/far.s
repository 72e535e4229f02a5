// The pool is out of range of a branch: dead registers hold its address. A kernel's descriptor needs none.
// kernels: odd, k, calls
// still: odd, calls
.globl odd
.p2align 8
.type odd,@function
odd:
s_load_b64 s[4:5], s[0:1], 0x0
s_wait_kmcnt 0x0
s_add_co_u32 s4, s4, s8
s_add_co_ci_u32 s5, s5, 0
s_set_pc_i64 s[4:5]
s_endpgm
.Lodd_end:
.size odd, .Lodd_end-odd
.globl k
.p2align 8
.type k,@function
k:
s_cbranch_scc1 .Lk_out
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
v_add_f32 v2, v2, v3
.Lk_out:
global_store_b32 v[4:5], v2, off
s_endpgm
.Lk_end:
.size k, .Lk_end-k
.p2align 8
.type f,@function
f:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
v_add_f32 v2, v2, v3
v_add_f32 v2, v2, v3
s_set_pc_i64 s[30:31]
.Lf_end:
.size f, .Lf_end-f
.globl calls
.p2align 8
.type calls,@function
calls:
s_get_pc_i64 s[4:5]
s_add_nc_u64 s[4:5], s[4:5], f@rel64+4
s_swap_pc_i64 s[30:31], s[4:5]
.fill 40000, 4, 0xbf800003
global_store_b32 v[4:5], v2, off
s_endpgm
.Lcalls_end:
.size calls, .Lcalls_end-calls
