	v_dot2_f32_f16 v4, v0, v1, v4 //mir: $vgpr4 = V_DOT2_F32_F16 8, $vgpr0, 8, $vgpr1, 8, $vgpr4, 0, 0, 0, 0, 0, implicit $mode, implicit $exec
	v_mov_b32_e32 v5, v4 //mir: $vgpr5 = V_MOV_B32_e32 $vgpr4, implicit $exec

	v_dot4c_i32_i8_e32 v4, v0, v1 //mir: $vgpr4 = V_DOT4C_I32_I8_e32 $vgpr0, $vgpr1, $vgpr4, implicit $exec
	v_dot8c_i32_i4_e32 v4, v2, v3 //mir: $vgpr4 = V_DOT8C_I32_I4_e32 $vgpr2, $vgpr3, $vgpr4, implicit $exec

	v_dot4_i32_i8 v4, v0, v1, v2 //mir: $vgpr4 = V_DOT4_I32_I8 8, $vgpr0, 8, $vgpr1, 8, $vgpr2, 0, 0, 0, implicit $exec
	global_store_dword v[2:3], v4, off //mir: GLOBAL_STORE_DWORD $vgpr2_vgpr3, $vgpr4, 0, 0, implicit $exec

	v_dot4c_i32_i8_e32 v4, v0, v1 //mir: $vgpr4 = V_DOT4C_I32_I8_e32 $vgpr0, $vgpr1, $vgpr4, implicit $exec
	ds_write_b32 v2, v4 //mir: DS_WRITE_B32_gfx9 $vgpr2, $vgpr4, 0, 0, implicit $exec

	v_dot4c_i32_i8_e32 v4, v0, v1 //mir: $vgpr4 = V_DOT4C_I32_I8_e32 $vgpr0, $vgpr1, $vgpr4, implicit $exec
	v_dot4c_i32_i8_dpp v4, v0, v1 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf //mir: $vgpr4 = V_DOT4C_I32_I8_dpp 0, $vgpr0, 0, $vgpr1, $vgpr4, 228, 15, 15, 0, implicit $exec
