	s_mov_b32 m0, s4 //mir: $m0 = S_MOV_B32 $sgpr4
	buffer_load_dword off, s[8:11], 0 lds //mir: BUFFER_LOAD_DWORD_LDS_OFFSET $sgpr8_sgpr9_sgpr10_sgpr11, 0, 0, 0, 0, 0, implicit $exec, implicit $m0

	s_mov_b32 m0, s4 //mir: $m0 = S_MOV_B32 $sgpr4
	s_sendmsg sendmsg(MSG_INTERRUPT) //mir: S_SENDMSG 1, implicit $exec, implicit $m0
