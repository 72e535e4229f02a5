	v_readfirstlane_b32 s4, v0 //mir: $sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec
	buffer_load_dword v1, off, s[4:7], 0 //mir: $vgpr1 = BUFFER_LOAD_DWORD_OFFSET $sgpr4_sgpr5_sgpr6_sgpr7, 0, 0, 0, 0, implicit $exec
