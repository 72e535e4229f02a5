// The callers of the function are unknown, so no registers are certain to be free for a long branch: refused.
// kernels: odd
.globl odd
.p2align 8
.type odd,@function
odd:
s_get_pc_i64 s[4:5]
s_add_co_u32 s4, s4, s8
s_add_co_ci_u32 s5, s5, 0
s_set_pc_i64 s[4:5]
.Lodd_end:
.size odd, .Lodd_end-odd
.globl f
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
.p2align 8
.type filler,@function
filler:
.fill 40000, 4, 0xbf800003
s_set_pc_i64 s[30:31]
.Lfiller_end:
.size filler, .Lfiller_end-filler
