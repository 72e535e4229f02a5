// Families that the other rewriter refused whole: sparse products of 8-bit floats, and spacing behind products of bytes.
k:
	v_swmmac_f32_16x16x128_fp8_fp8 v[24:31], v[16:23], v[0:15], v[32:33]
	v_add_f32 v24, v24, v25
	v_wmma_i32_16x16x64_iu8 v[40:47], v[16:23], v[8:15], v[40:47]
	v_add_f32 v40, v40, v41
	s_endpgm
