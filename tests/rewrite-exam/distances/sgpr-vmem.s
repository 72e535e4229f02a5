	v_readfirstlane_b32 s4, v0 //mir: $sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec
	global_load_dword v1, v2, s[4:5] //mir: $vgpr1 = GLOBAL_LOAD_DWORD_SADDR $sgpr4_sgpr5, $vgpr2, 0, 0, implicit $exec

	v_readfirstlane_b32 s4, v0 //mir: $sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec
	buffer_load_dword v1, off, s[4:7], 0 //mir: $vgpr1 = BUFFER_LOAD_DWORD_OFFSET $sgpr4_sgpr5_sgpr6_sgpr7, 0, 0, 0, 0, implicit $exec

	v_cmp_eq_u32_e32 vcc, v0, v1 //mir: V_CMP_EQ_U32_e32 $vgpr0, $vgpr1, implicit-def $vcc, implicit $exec
	buffer_load_dword v1, off, s[8:11], vcc_lo //mir: $vgpr1 = BUFFER_LOAD_DWORD_OFFSET $sgpr8_sgpr9_sgpr10_sgpr11, $vcc_lo, 0, 0, 0, implicit $exec
