	v_mfma_f32_32x32x2f32 a[64:79], v4, v6, a[32:47] //mir: $agpr64_agpr65_agpr66_agpr67_agpr68_agpr69_agpr70_agpr71_agpr72_agpr73_agpr74_agpr75_agpr76_agpr77_agpr78_agpr79 = V_MFMA_F32_32X32X2F32_e64 $vgpr4, $vgpr6, $agpr32_agpr33_agpr34_agpr35_agpr36_agpr37_agpr38_agpr39_agpr40_agpr41_agpr42_agpr43_agpr44_agpr45_agpr46_agpr47, 0, 0, 0, implicit $mode, implicit $exec
	v_accvgpr_write_b32 a65, v2 //mir: $agpr65 = V_ACCVGPR_WRITE_B32_e64 $vgpr2, implicit $exec

	v_mfma_f32_4x4x1f32 a[64:67], v4, v6, a[32:35] //mir: $agpr64_agpr65_agpr66_agpr67 = V_MFMA_F32_4X4X1F32_e64 $vgpr4, $vgpr6, $agpr32_agpr33_agpr34_agpr35, 0, 0, 0, implicit $mode, implicit $exec
	v_accvgpr_write_b32 a65, v2 //mir: $agpr65 = V_ACCVGPR_WRITE_B32_e64 $vgpr2, implicit $exec

	v_mfma_f32_16x16x4f32 a[64:67], v4, v6, a[32:35] //mir: $agpr64_agpr65_agpr66_agpr67 = V_MFMA_F32_16X16X4F32_e64 $vgpr4, $vgpr6, $agpr32_agpr33_agpr34_agpr35, 0, 0, 0, implicit $mode, implicit $exec
	v_accvgpr_write_b32 a65, v2 //mir: $agpr65 = V_ACCVGPR_WRITE_B32_e64 $vgpr2, implicit $exec
