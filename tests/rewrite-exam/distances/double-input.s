	v_mfma_f64_4x4x4f64 v[64:65], v[4:5], v[6:7], v[32:33] //mir: $vgpr64_vgpr65 = V_MFMA_F64_4X4X4F64_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33, 0, 0, 0, implicit $mode, implicit $exec
	v_mfma_f64_4x4x4f64 v[104:105], v[64:65], v[10:11], v[104:105] //mir: $vgpr104_vgpr105 = V_MFMA_F64_4X4X4F64_vgprcd_e64 $vgpr64_vgpr65, $vgpr10_vgpr11, $vgpr104_vgpr105, 0, 0, 0, implicit $mode, implicit $exec

	v_mfma_f64_16x16x4f64 v[64:71], v[4:5], v[6:7], v[32:39] //mir: $vgpr64_vgpr65_vgpr66_vgpr67_vgpr68_vgpr69_vgpr70_vgpr71 = V_MFMA_F64_16X16X4F64_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35_vgpr36_vgpr37_vgpr38_vgpr39, 0, 0, 0, implicit $mode, implicit $exec
	v_mfma_f64_4x4x4f64 v[104:105], v[64:65], v[10:11], v[104:105] //mir: $vgpr104_vgpr105 = V_MFMA_F64_4X4X4F64_vgprcd_e64 $vgpr64_vgpr65, $vgpr10_vgpr11, $vgpr104_vgpr105, 0, 0, 0, implicit $mode, implicit $exec
