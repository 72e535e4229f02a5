	v_cmpx_eq_u32_e32 vcc, v14, v15 //mir: V_CMPX_EQ_U32_e32 $vgpr14, $vgpr15, implicit-def $exec, implicit-def $vcc, implicit $exec
	v_mfma_f32_4x4x1f32 a[0:3], v4, v6, a[8:11] //mir: $agpr0_agpr1_agpr2_agpr3 = V_MFMA_F32_4X4X1F32_e64 $vgpr4, $vgpr6, $agpr8_agpr9_agpr10_agpr11, 0, 0, 0, implicit $mode, implicit $exec

	v_cmpx_eq_u32_e32 vcc, v14, v15 //mir: V_CMPX_EQ_U32_e32 $vgpr14, $vgpr15, implicit-def $exec, implicit-def $vcc, implicit $exec
	v_accvgpr_write_b32 a3, v2 //mir: $agpr3 = V_ACCVGPR_WRITE_B32_e64 $vgpr2, implicit $exec
