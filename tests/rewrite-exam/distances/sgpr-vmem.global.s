	v_readfirstlane_b32 s4, v0 //mir: $sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec
	global_load_dword v1, v2, s[4:5] //mir: $vgpr1 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr2, 0, 0, implicit $exec
