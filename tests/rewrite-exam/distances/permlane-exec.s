	v_cmpx_eq_u32_e32 vcc, v4, v5 //mir: V_CMPX_EQ_U32_e32 $vgpr4, $vgpr5, implicit-def $exec, implicit-def $vcc, implicit $exec
	v_permlane32_swap_b32_e32 v0, v1 //mir: $vgpr0, $vgpr1 = V_PERMLANE32_SWAP_B32_e32 $vgpr0, $vgpr1, implicit $exec

	v_cmpx_eq_i32_e64 s[2:3], v4, v5 //mir: $sgpr2_sgpr3 = V_CMPX_EQ_I32_e64 $vgpr4, $vgpr5, implicit-def $exec, implicit $exec
	v_permlane16_swap_b32_e64 v0, v1 //mir: $vgpr0, $vgpr1 = V_PERMLANE16_SWAP_B32_e64 $vgpr0, $vgpr1, 0, 0, implicit $exec
