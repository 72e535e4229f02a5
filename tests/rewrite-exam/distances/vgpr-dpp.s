	v_mov_b32_e32 v1, v2 //mir: $vgpr1 = V_MOV_B32_e32 $vgpr2, implicit $exec
	v_mov_b32_dpp v3, v1 quad_perm:[0,0,0,0] row_mask:0xf bank_mask:0xf //mir: $vgpr3 = V_MOV_B32_dpp $vgpr3, $vgpr1, 0, 15, 15, 0, implicit $exec
