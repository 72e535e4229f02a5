// vgprs: 1024
// A crosses v255: the other rewriter could not encode its second half, dropped the change and said it was done (L3413, L3428).
k:
	s_set_vgpr_msb 0x51
	v_wmma_f32_16x16x128_fp8_fp8 v[0:7], v[250:265], v[24:39], v[0:7]
	v_wmma_f16_16x16x128_fp8_bf8 v[40:43], v[250:265], v[24:39], v[40:43]
	s_set_vgpr_msb 0x5100
	s_endpgm
