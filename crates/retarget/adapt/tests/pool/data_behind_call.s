// The target of a call is unknown, but its references to data are resolved: data may be moved.
// kernels: calls, k
.globl calls
.p2align 8
.type calls,@function
calls:
s_get_pc_i64 s[6:7]
s_add_nc_u64 s[6:7], s[6:7], cell@rel64+4
s_load_b64 s[4:5], s[0:1], 0x0
s_wait_kmcnt 0x0
s_add_co_u32 s4, s4, 8
s_add_co_ci_u32 s5, s5, 0
s_swap_pc_i64 s[30:31], s[4:5]
s_load_b32 s8, s[6:7], 0x0
s_endpgm
.Lcalls_end:
.size calls, .Lcalls_end-calls
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
.data
.hidden cell
.globl cell
.type cell,@object
cell:
.long 1
.size cell, 4
.text
