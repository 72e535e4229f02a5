	v_add_f16_sdwa v1, v2, v3 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD //mir: $vgpr1 = V_ADD_F16_sdwa 0, $vgpr2, 0, $vgpr3, 0, 0, 5, 0, 6, 6, implicit $mode, implicit $exec
	v_mov_b32_e32 v4, v1 //mir: $vgpr4 = V_MOV_B32_e32 $vgpr1, implicit $exec
