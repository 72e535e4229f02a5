	v_exp_f32_e32 v1, v2 //mir: $vgpr1 = V_EXP_F32_e32 $vgpr2, implicit $mode, implicit $exec
	v_mov_b32_e32 v3, v1 //mir: $vgpr3 = V_MOV_B32_e32 $vgpr1, implicit $exec
