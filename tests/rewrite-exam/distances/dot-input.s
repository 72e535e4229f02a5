	v_dot4c_i32_i8_e32 v4, v0, v1 //mir: $vgpr4 = V_DOT4C_I32_I8_e32 $vgpr0, $vgpr1, $vgpr4, implicit $exec
	v_dot4c_i32_i8_e32 v5, v4, v1 //mir: $vgpr5 = V_DOT4C_I32_I8_e32 $vgpr4, $vgpr1, $vgpr5, implicit $exec

	v_dot2_f32_f16 v4, v0, v1, v4 //mir: $vgpr4 = V_DOT2_F32_F16 8, $vgpr0, 8, $vgpr1, 8, $vgpr4, 0, 0, 0, 0, 0, implicit $mode, implicit $exec
	v_dot2_f32_f16 v5, v0, v4, v5 //mir: $vgpr5 = V_DOT2_F32_F16 8, $vgpr0, 8, $vgpr4, 8, $vgpr5, 0, 0, 0, 0, 0, implicit $mode, implicit $exec
