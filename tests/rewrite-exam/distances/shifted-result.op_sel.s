	v_mad_i16 v1, v2, v3, v4 op_sel:[0,0,0,1] //mir: $vgpr1 = V_MAD_I16_gfx9_e64 8, $vgpr2, 0, $vgpr3, 0, $vgpr4, 0, 0, implicit $exec
	v_mov_b32_e32 v1, v5 //mir: $vgpr1 = V_MOV_B32_e32 $vgpr5, implicit $exec
