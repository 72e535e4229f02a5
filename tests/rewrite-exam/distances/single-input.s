	v_mfma_f32_32x32x2_f32 v[64:79], v4, v6, v[32:47] //mir: $vgpr64_vgpr65_vgpr66_vgpr67_vgpr68_vgpr69_vgpr70_vgpr71_vgpr72_vgpr73_vgpr74_vgpr75_vgpr76_vgpr77_vgpr78_vgpr79 = V_MFMA_F32_32X32X2F32_vgprcd_e64 $vgpr4, $vgpr6, $vgpr32_vgpr33_vgpr34_vgpr35_vgpr36_vgpr37_vgpr38_vgpr39_vgpr40_vgpr41_vgpr42_vgpr43_vgpr44_vgpr45_vgpr46_vgpr47, 0, 0, 0, implicit $mode, implicit $exec
	v_mfma_f32_4x4x1_16b_f32 v[104:107], v64, v10, v[104:107] //mir: $vgpr104_vgpr105_vgpr106_vgpr107 = V_MFMA_F32_4X4X1F32_vgprcd_e64 $vgpr64, $vgpr10, $vgpr104_vgpr105_vgpr106_vgpr107, 0, 0, 0, implicit $mode, implicit $exec

	v_mfma_f32_4x4x1_16b_f32 v[64:67], v4, v6, v[32:35] //mir: $vgpr64_vgpr65_vgpr66_vgpr67 = V_MFMA_F32_4X4X1F32_vgprcd_e64 $vgpr4, $vgpr6, $vgpr32_vgpr33_vgpr34_vgpr35, 0, 0, 0, implicit $mode, implicit $exec
	v_mfma_f32_4x4x1_16b_f32 v[104:107], v64, v10, v[104:107] //mir: $vgpr104_vgpr105_vgpr106_vgpr107 = V_MFMA_F32_4X4X1F32_vgprcd_e64 $vgpr64, $vgpr10, $vgpr104_vgpr105_vgpr106_vgpr107, 0, 0, 0, implicit $mode, implicit $exec

	v_mfma_f32_16x16x4_f32 v[64:67], v4, v6, v[32:35] //mir: $vgpr64_vgpr65_vgpr66_vgpr67 = V_MFMA_F32_16X16X4F32_vgprcd_e64 $vgpr4, $vgpr6, $vgpr32_vgpr33_vgpr34_vgpr35, 0, 0, 0, implicit $mode, implicit $exec
	v_mfma_f32_4x4x1_16b_f32 v[104:107], v64, v10, v[104:107] //mir: $vgpr104_vgpr105_vgpr106_vgpr107 = V_MFMA_F32_4X4X1F32_vgprcd_e64 $vgpr64, $vgpr10, $vgpr104_vgpr105_vgpr106_vgpr107, 0, 0, 0, implicit $mode, implicit $exec
