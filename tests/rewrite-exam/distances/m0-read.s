	s_mov_b32 m0, s4 //mir: $m0 = S_MOV_B32 $sgpr4
	s_sendmsg sendmsg(MSG_INTERRUPT) //mir: S_SENDMSG 1, implicit $exec, implicit $m0
