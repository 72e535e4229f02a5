// The result lies over the address, or over the address of the other half (L3345).
k:
	ds_load_2addr_b32 v[0:1], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	ds_load_2addr_b32 v[2:3], v3 offset0:1 offset1:9
	ds_storexchg_2addr_rtn_b32 v[4:5], v6, v4, v7 offset0:2 offset1:11
	s_wait_dscnt 0x0
	global_store_b128 v8, v[0:3], s[2:3]
	global_store_b64 v8, v[4:5], s[2:3] offset:16
	s_endpgm
