	v_cmp_eq_u32_e32 vcc, v0, v1 //mir: V_CMP_EQ_U32_e32 $vgpr0, $vgpr1, implicit-def $vcc, implicit $exec
	v_div_fmas_f32 v3, v4, v5, v6 //mir: $vgpr3 = V_DIV_FMAS_F32_e64 0, $vgpr4, 0, $vgpr5, 0, $vgpr6, 0, 0, implicit $mode, implicit $vcc, implicit $exec
