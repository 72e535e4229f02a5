	v_cmpx_eq_u32_e32 vcc, v4, v5 //mir: V_CMPX_EQ_U32_e32 $vgpr4, $vgpr5, implicit-def $exec, implicit-def $vcc, implicit $exec
	v_readfirstlane_b32 s6, v1 //mir: $sgpr6 = V_READFIRSTLANE_B32 $vgpr1, implicit $exec
