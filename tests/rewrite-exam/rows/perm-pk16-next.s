	v_perm_pk16_b4_u4 v[0:1], v2, v3, v[4:5]
	//fixed: v_nop
	s_mov_b32 s0, 0
