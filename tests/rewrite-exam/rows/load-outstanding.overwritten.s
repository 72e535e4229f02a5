	ds_load_b32 v1, v2
	//fixed: s_wait_dscnt 0x0
	v_mov_b32_e32 v1, 0
