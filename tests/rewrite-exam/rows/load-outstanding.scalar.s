	s_load_b32 s4, s[2:3], 0x0
	//fixed: s_wait_kmcnt 0x0
	s_add_co_u32 s5, s4, 1
