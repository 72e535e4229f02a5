	v_cmpx_eq_u32_e32 vcc, v4, v5 //mir: V_CMPX_EQ_U32_e32 $vgpr4, $vgpr5, implicit-def $exec, implicit-def $vcc, implicit $exec
	v_mfma_f32_4x4x4f16 v[64:67], v[4:5], v[6:7], v[32:35] //mir: $vgpr64_vgpr65_vgpr66_vgpr67 = V_MFMA_F32_4X4X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35, 0, 0, 0, implicit $mode, implicit $exec
