	v_exp_f32_e32 v1, v2
	//fixed: v_nop
	global_load_async_to_lds_b32 v1, v4, s[2:3]
	s_wait_asynccnt 0x0
