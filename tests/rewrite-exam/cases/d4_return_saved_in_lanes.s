// A function keeps its return address in lanes of a register, calls, and returns by it (S10354).
k:
	s_get_pc_i64 s[0:1]
	s_add_nc_u64 s[0:1], s[0:1], outer-.
	s_swap_pc_i64 s[30:31], s[0:1]
	global_store_b64 v1, v[2:3], s[2:3]
	s_endpgm
.Lk_end:
	.p2align 4
	.type outer,@function
outer:
	v_writelane_b32 v40, s30, 0
	v_writelane_b32 v40, s31, 1
	s_get_pc_i64 s[0:1]
	s_add_nc_u64 s[0:1], s[0:1], leaf-.
	s_swap_pc_i64 s[30:31], s[0:1]
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	v_readlane_b32 s30, v40, 0
	v_readlane_b32 s31, v40, 1
	s_set_pc_i64 s[30:31]
.Louter_end:
	.size outer, .Louter_end-outer
	.p2align 4
	.type leaf,@function
leaf:
	ds_load_2addr_b32 v[4:5], v0 offset0:2 offset1:17
	s_wait_dscnt 0x0
	s_set_pc_i64 s[30:31]
.Lleaf_end:
	.size leaf, .Lleaf_end-leaf
