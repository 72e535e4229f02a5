	v_swmmac_i32_16x16x128_iu8 v[0:7], v[8:15], v[16:31], v[32:33]
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	v_wmma_f32_16x16x32_f16 v[48:55], v[0:7], v[8:15], v[48:55]
