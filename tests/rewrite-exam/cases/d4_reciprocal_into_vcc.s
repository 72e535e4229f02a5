// A scalar reciprocal writes VCC, which the next instruction reads (63 of a list).
k:
	v_s_rcp_f32 vcc_lo, s4
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	v_mul_f32 v2, vcc_lo, v2
	global_store_b64 v1, v[2:3], s[2:3]
	s_endpgm
