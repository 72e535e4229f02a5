// A jump to what memory says, in the middle of a function with a place (ten kernels of a library).
k:
	s_load_b64 s[4:5], s[0:1], 0x0
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	s_wait_kmcnt 0x0
	s_set_pc_i64 s[4:5]
	ds_load_2addr_b32 v[2:3], v0 offset0:5 offset1:40
	s_wait_dscnt 0x0
	s_endpgm
