// VCC is live over the conversion, and the neutral scale of a matrix instruction is the constant 0 (S9319).
k:
	v_cmp_lt_u32 vcc_lo, v1, v2
	v_cvt_pk_fp8_f32 v5, v1, v2 clamp
	v_cndmask_b32 v6, v1, v5, vcc_lo
	v_wmma_f32_16x16x128_f8f6f4 v[8:15], v[16:31], v[32:47], v[8:15]
	v_nop
	v_nop
	v_nop
	v_nop
	v_nop
	v_nop
	v_nop
	v_nop
	v_add_f32 v8, v8, v6
	global_store_b32 v7, v8, s[2:3]
	s_endpgm
