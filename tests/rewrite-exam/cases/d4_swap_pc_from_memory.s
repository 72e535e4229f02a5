// A call of what memory says, with places before and behind it (72 of about 143 entries of a list).
k:
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_load_b64 s[4:5], s[0:1], 0x0
	s_wait_dscnt 0x0
	s_wait_kmcnt 0x0
	v_mov_b32 v40, v2
	s_swap_pc_i64 s[30:31], s[4:5]
	ds_load_2addr_b32 v[4:5], v41 offset0:2 offset1:17
	s_wait_dscnt 0x0
	v_add_f32 v4, v4, v40
	global_store_b64 v42, v[4:5], s[34:35]
	s_endpgm
