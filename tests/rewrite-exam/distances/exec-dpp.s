	v_cmpx_eq_u32_e32 vcc, v4, v5 //mir: V_CMPX_EQ_U32_e32 $vgpr4, $vgpr5, implicit-def $exec, implicit-def $vcc, implicit $exec
	v_mov_b32_dpp v3, v1 quad_perm:[0,0,0,0] row_mask:0xf bank_mask:0xf //mir: $vgpr3 = V_MOV_B32_dpp $vgpr3, $vgpr1, 0, 15, 15, 0, implicit $exec
