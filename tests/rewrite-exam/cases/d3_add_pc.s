// A jump by a distance over code that grows (L3305).
k:
	s_cbranch_scc0 over
	s_add_pc_i64 8
over:
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	global_store_b64 v1, v[2:3], s[2:3]
	s_endpgm
