	v_dot2_f32_f16 v4, v0, v1, v2 //mir: $vgpr4 = V_DOT2_F32_F16 8, $vgpr0, 8, $vgpr1, 8, $vgpr2, 0, 0, 0, 0, 0, implicit $mode, implicit $exec
	v_mov_b32_e32 v4, v5 //mir: $vgpr4 = V_MOV_B32_e32 $vgpr5, implicit $exec

	v_dot4_i32_i8 v4, v0, v1, v2 //mir: $vgpr4 = V_DOT4_I32_I8 8, $vgpr0, 8, $vgpr1, 8, $vgpr2, 0, 0, 0, implicit $exec
	v_dot8_i32_i4 v4, v0, v1, v2 //mir: $vgpr4 = V_DOT8_I32_I4 8, $vgpr0, 8, $vgpr1, 8, $vgpr2, 0, 0, 0, implicit $exec

	v_dot4_i32_i8 v4, v0, v1, v2 //mir: $vgpr4 = V_DOT4_I32_I8 8, $vgpr0, 8, $vgpr1, 8, $vgpr2, 0, 0, 0, implicit $exec
	global_load_dword v4, v[2:3], off //mir: $vgpr4 = GLOBAL_LOAD_DWORD $vgpr2_vgpr3, 0, 0, implicit $exec
