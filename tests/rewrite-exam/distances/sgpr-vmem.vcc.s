	v_cmp_eq_u32_e32 vcc, v0, v1 //mir: V_CMP_EQ_U32_e32 $vgpr0, $vgpr1, implicit-def $vcc, implicit $exec
	buffer_load_dword v1, off, s[8:11], vcc_lo //mir: $vgpr1 = BUFFER_LOAD_DWORD_OFFSET $sgpr8_sgpr9_sgpr10_sgpr11, $vcc_lo, 0, 0, 0, implicit $exec
