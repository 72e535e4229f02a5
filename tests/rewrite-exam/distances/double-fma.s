	v_mfma_f64_4x4x4f64 v[64:65], v[4:5], v[6:7], v[32:33] //mir: $vgpr64_vgpr65 = V_MFMA_F64_4X4X4F64_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33, 0, 0, 0, implicit $mode, implicit $exec
	v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7] //mir: $vgpr0_vgpr1 = V_FMA_F64_e64 0, $vgpr2_vgpr3, 0, $vgpr4_vgpr5, 0, $vgpr6_vgpr7, 0, 0, implicit $mode, implicit $exec
