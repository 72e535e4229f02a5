// Scale and matrix halves stay one instruction of 16 bytes, and a bare one becomes such (L2519).
k:
	v_wmma_f32_16x16x128_f8f6f4 v[8:15], v[16:31], v[32:47], v[8:15] matrix_a_fmt:MATRIX_FMT_BF8
	v_wmma_scale_f32_16x16x128_f8f6f4 v[8:15], v[16:31], v[32:47], v[8:15], v48, v49
	s_endpgm
