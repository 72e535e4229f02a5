// A wait that counted two accesses at two addresses each counted two results; after the split there are four (L2945).
k:
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	ds_load_2addr_b32 v[4:5], v0 offset0:3 offset1:20
	s_wait_dscnt 0x1
	v_add_f32 v6, v2, v3
	s_wait_dscnt 0x0
	v_add_f32 v7, v4, v5
	global_store_b64 v1, v[6:7], s[2:3]
	s_endpgm
