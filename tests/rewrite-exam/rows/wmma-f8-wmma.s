	v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7], v40, v41
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	//fixed: v_nop
	v_wmma_f32_16x16x32_f16 v[48:55], v[0:7], v[8:15], v[48:55]
