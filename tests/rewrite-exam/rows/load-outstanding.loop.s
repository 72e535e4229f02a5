	s_mov_b32 s4, 0
.Lload_outstanding_loop:
	//fixed: s_wait_loadcnt 0x0
	v_mov_b32_e32 v4, v1
	global_load_b32 v1, v5, s[2:3]
	s_add_co_i32 s4, s4, 1
	s_cmp_lt_i32 s4, 9
	s_cbranch_scc1 .Lload_outstanding_loop
