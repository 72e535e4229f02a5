	v_wmma_i32_16x16x64_iu8 v[0:7], v[8:15], v[16:23], v[0:7]
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	v_mov_b32_e32 v8, 0
