// A kernel without instructions starts at the end of the code: functions that grow cannot be put there.
// kernels: odd, k, last, none
// still: odd, last
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
.globl last
.p2align 8
.type last,@function
last:
s_nop 2
s_endpgm
.Llast_end:
.size last, .Llast_end-last
.globl none
.protected none
.p2align 8
.type none,@function
none:
.size none, 0
