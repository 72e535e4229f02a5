// A long branch whose sign is tested by a comparison of another register: both ways may be taken, and one distance
// cannot lead both to where they led. It is refused.
k:
	s_mov_b32 s7, 0
	s_get_pc_i64 s[4:5]
	s_add_co_i32 s6, .Lfar, 0x4
	s_cmp_ge_i32 s7, 0
	s_cbranch_scc1 .Lpositive
	s_abs_i32 s6, s6
	s_sub_co_u32 s4, s4, s6
	s_sub_co_ci_u32 s5, s5, 0
	s_set_pc_i64 s[4:5]
.Lpositive:
	s_add_co_u32 s4, s4, s6
	s_add_co_ci_u32 s5, s5, 0
	s_set_pc_i64 s[4:5]
.Lnear:
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	global_store_b64 v1, v[2:3], s[2:3]
	s_endpgm
.Lfar:
	ds_load_2addr_b32 v[2:3], v0 offset0:5 offset1:40
	s_wait_dscnt 0x0
	global_store_b64 v1, v[2:3], s[2:3] offset:8
	s_endpgm
