	v_mad_i16 v1, v2, v3, v4 op_sel:[0,0,0,1] //mir: $vgpr1 = V_MAD_I16_gfx9_e64 8, $vgpr2, 0, $vgpr3, 0, $vgpr4, 0, 0, implicit $exec
	v_mov_b32_e32 v1, v5 //mir: $vgpr1 = V_MOV_B32_e32 $vgpr5, implicit $exec

	v_add_f16_sdwa v1, v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD //mir: $vgpr1 = V_ADD_F16_sdwa 0, $vgpr2, 0, $vgpr3, 0, 0, 5, 0, 6, 6, implicit $mode, implicit $exec
	v_mov_b32_e32 v4, v1 //mir: $vgpr4 = V_MOV_B32_e32 $vgpr1, implicit $exec
