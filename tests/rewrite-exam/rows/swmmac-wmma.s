	v_swmmac_f32_16x16x64_f16 v[0:7], v[8:15], v[16:31], v32
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	v_wmma_f32_16x16x32_f16 v[48:55], v[0:7], v[8:15], v[48:55]
