	v_mfma_f64_4x4x4f64 v[64:65], v[4:5], v[6:7], v[32:33] //mir: $vgpr64_vgpr65 = V_MFMA_F64_4X4X4F64_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33, 0, 0, 0, implicit $mode, implicit $exec
	v_mfma_f64_4x4x4f64 v[64:65], v[10:11], v[12:13], v[64:65] //mir: $vgpr64_vgpr65 = V_MFMA_F64_4X4X4F64_vgprcd_e64 $vgpr10_vgpr11, $vgpr12_vgpr13, $vgpr64_vgpr65, 0, 0, 0, implicit $mode, implicit $exec
