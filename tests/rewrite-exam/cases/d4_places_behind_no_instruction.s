// Execution reaches bytes that are no instruction, and a place comes behind them: never passed over in silence.
k:
	v_mov_b32 v2, 0
	.long 0xd0310000, 0x00000000, 0x7c7c2824
	v_wmma_f32_16x16x128_f8f6f4 v[8:15], v[16:31], v[32:47], v[8:15]
	global_store_b64 v1, v[8:9], s[2:3]
	s_endpgm
