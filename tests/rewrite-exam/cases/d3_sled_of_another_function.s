// The s_nop in front of `g` are its own, not room for `k` (L3195).
k:
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	global_store_b64 v1, v[2:3], s[2:3]
	s_endpgm
.Lk_end:
	.p2align 2
	.globl g
	.type g,@function
g:
	s_nop 0
	s_nop 0
	s_nop 0
	s_nop 0
	s_set_pc_i64 s[30:31]
.Lg_end:
	.size g, .Lg_end-g
