	v_exp_f32_e32 v1, v2
	//fixed: v_nop
	v_mov_b32_e32 v3, v1
