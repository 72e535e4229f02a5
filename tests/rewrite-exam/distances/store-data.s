	buffer_store_dwordx3 v[4:6], off, s[8:11], 0 //mir: BUFFER_STORE_DWORDX3_OFFSET_exact $vgpr4_vgpr5_vgpr6, $sgpr8_sgpr9_sgpr10_sgpr11, 0, 0, 0, 0, implicit $exec
	v_mov_b32_e32 v6, v9 //mir: $vgpr6 = V_MOV_B32_e32 $vgpr9, implicit $exec

	global_store_dwordx4 v[2:3], v[4:7], off //mir: GLOBAL_STORE_DWORDX4 $vgpr2_vgpr3, $vgpr4_vgpr5_vgpr6_vgpr7, 0, 0, implicit $exec
	v_mov_b32_e32 v6, v9 //mir: $vgpr6 = V_MOV_B32_e32 $vgpr9, implicit $exec
