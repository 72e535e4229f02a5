	v_mfma_f32_16x16x4f32 a[64:67], v4, v6, a[32:35] //mir: $agpr64_agpr65_agpr66_agpr67 = V_MFMA_F32_16X16X4F32_e64 $vgpr4, $vgpr6, $agpr32_agpr33_agpr34_agpr35, 0, 0, 0, implicit $mode, implicit $exec
	v_mfma_f32_4x4x1f32 a[0:3], a65, v6, a[8:11] //mir: $agpr0_agpr1_agpr2_agpr3 = V_MFMA_F32_4X4X1F32_e64 $agpr65, $vgpr6, $agpr8_agpr9_agpr10_agpr11, 0, 0, 0, implicit $mode, implicit $exec
