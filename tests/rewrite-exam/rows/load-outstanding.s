	global_load_b32 v1, v[2:3], off
	//fixed: s_wait_loadcnt 0x0
	v_mov_b32_e32 v4, v1
