	v_accvgpr_write_b32 a65, v2 //mir: $agpr65 = V_ACCVGPR_WRITE_B32_e64 $vgpr2, implicit $exec
	v_mfma_f32_4x4x1f32 a[0:3], a65, v6, a[8:11] //mir: $agpr0_agpr1_agpr2_agpr3 = V_MFMA_F32_4X4X1F32_e64 $agpr65, $vgpr6, $agpr8_agpr9_agpr10_agpr11, 0, 0, 0, implicit $mode, implicit $exec
