	v_wmma_f32_16x16x32_f16 v[0:7], v[8:15], v[16:23], v[24:31]
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	v_mov_b32_e32 v24, 0
