	v_cmp_eq_u32_e32 vcc, v0, v1 //mir: V_CMP_EQ_U32_e32 $vgpr0, $vgpr1, implicit-def $vcc, implicit $exec
	v_cndmask_b32_e32 v3, v4, v5, vcc //mir: $vgpr3 = V_CNDMASK_B32_e32 $vgpr4, $vgpr5, implicit $vcc, implicit $exec
