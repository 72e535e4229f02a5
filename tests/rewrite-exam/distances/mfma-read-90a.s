	v_mfma_f32_32x32x4f16 v[64:95], v[4:5], v[6:7], v[32:63] //mir: $vgpr64_vgpr65_vgpr66_vgpr67_vgpr68_vgpr69_vgpr70_vgpr71_vgpr72_vgpr73_vgpr74_vgpr75_vgpr76_vgpr77_vgpr78_vgpr79_vgpr80_vgpr81_vgpr82_vgpr83_vgpr84_vgpr85_vgpr86_vgpr87_vgpr88_vgpr89_vgpr90_vgpr91_vgpr92_vgpr93_vgpr94_vgpr95 = V_MFMA_F32_32X32X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35_vgpr36_vgpr37_vgpr38_vgpr39_vgpr40_vgpr41_vgpr42_vgpr43_vgpr44_vgpr45_vgpr46_vgpr47_vgpr48_vgpr49_vgpr50_vgpr51_vgpr52_vgpr53_vgpr54_vgpr55_vgpr56_vgpr57_vgpr58_vgpr59_vgpr60_vgpr61_vgpr62_vgpr63, 0, 0, 0, implicit $mode, implicit $exec
	v_mov_b32_e32 v2, v65 //mir: $vgpr2 = V_MOV_B32_e32 $vgpr65, implicit $exec

	v_mfma_f32_32x32x4f16 v[64:95], v[4:5], v[6:7], v[32:63] //mir: $vgpr64_vgpr65_vgpr66_vgpr67_vgpr68_vgpr69_vgpr70_vgpr71_vgpr72_vgpr73_vgpr74_vgpr75_vgpr76_vgpr77_vgpr78_vgpr79_vgpr80_vgpr81_vgpr82_vgpr83_vgpr84_vgpr85_vgpr86_vgpr87_vgpr88_vgpr89_vgpr90_vgpr91_vgpr92_vgpr93_vgpr94_vgpr95 = V_MFMA_F32_32X32X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35_vgpr36_vgpr37_vgpr38_vgpr39_vgpr40_vgpr41_vgpr42_vgpr43_vgpr44_vgpr45_vgpr46_vgpr47_vgpr48_vgpr49_vgpr50_vgpr51_vgpr52_vgpr53_vgpr54_vgpr55_vgpr56_vgpr57_vgpr58_vgpr59_vgpr60_vgpr61_vgpr62_vgpr63, 0, 0, 0, implicit $mode, implicit $exec
	ds_write_b32 v2, v65 //mir: DS_WRITE_B32_gfx9 $vgpr2, $vgpr65, 0, 0, implicit $exec

	v_mfma_f32_32x32x4f16 v[64:95], v[4:5], v[6:7], v[32:63] //mir: $vgpr64_vgpr65_vgpr66_vgpr67_vgpr68_vgpr69_vgpr70_vgpr71_vgpr72_vgpr73_vgpr74_vgpr75_vgpr76_vgpr77_vgpr78_vgpr79_vgpr80_vgpr81_vgpr82_vgpr83_vgpr84_vgpr85_vgpr86_vgpr87_vgpr88_vgpr89_vgpr90_vgpr91_vgpr92_vgpr93_vgpr94_vgpr95 = V_MFMA_F32_32X32X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35_vgpr36_vgpr37_vgpr38_vgpr39_vgpr40_vgpr41_vgpr42_vgpr43_vgpr44_vgpr45_vgpr46_vgpr47_vgpr48_vgpr49_vgpr50_vgpr51_vgpr52_vgpr53_vgpr54_vgpr55_vgpr56_vgpr57_vgpr58_vgpr59_vgpr60_vgpr61_vgpr62_vgpr63, 0, 0, 0, implicit $mode, implicit $exec
	global_store_dword v[2:3], v65, off //mir: GLOBAL_STORE_DWORD $vgpr2_vgpr3, $vgpr65, 0, 0, implicit $exec

	v_mfma_f32_4x4x4f16 v[64:67], v[4:5], v[6:7], v[32:35] //mir: $vgpr64_vgpr65_vgpr66_vgpr67 = V_MFMA_F32_4X4X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35, 0, 0, 0, implicit $mode, implicit $exec
	v_mov_b32_e32 v2, v65 //mir: $vgpr2 = V_MOV_B32_e32 $vgpr65, implicit $exec

	v_mfma_f32_4x4x4f16 v[64:67], v[4:5], v[6:7], v[32:35] //mir: $vgpr64_vgpr65_vgpr66_vgpr67 = V_MFMA_F32_4X4X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35, 0, 0, 0, implicit $mode, implicit $exec
	ds_write_b32 v2, v65 //mir: DS_WRITE_B32_gfx9 $vgpr2, $vgpr65, 0, 0, implicit $exec

	v_mfma_f32_4x4x4f16 v[64:67], v[4:5], v[6:7], v[32:35] //mir: $vgpr64_vgpr65_vgpr66_vgpr67 = V_MFMA_F32_4X4X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35, 0, 0, 0, implicit $mode, implicit $exec
	global_store_dword v[2:3], v65, off //mir: GLOBAL_STORE_DWORD $vgpr2_vgpr3, $vgpr65, 0, 0, implicit $exec

	v_mfma_f32_16x16x4f16 v[64:79], v[4:5], v[6:7], v[32:47] //mir: $vgpr64_vgpr65_vgpr66_vgpr67_vgpr68_vgpr69_vgpr70_vgpr71_vgpr72_vgpr73_vgpr74_vgpr75_vgpr76_vgpr77_vgpr78_vgpr79 = V_MFMA_F32_16X16X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35_vgpr36_vgpr37_vgpr38_vgpr39_vgpr40_vgpr41_vgpr42_vgpr43_vgpr44_vgpr45_vgpr46_vgpr47, 0, 0, 0, implicit $mode, implicit $exec
	v_mov_b32_e32 v2, v65 //mir: $vgpr2 = V_MOV_B32_e32 $vgpr65, implicit $exec

	v_mfma_f32_16x16x4f16 v[64:79], v[4:5], v[6:7], v[32:47] //mir: $vgpr64_vgpr65_vgpr66_vgpr67_vgpr68_vgpr69_vgpr70_vgpr71_vgpr72_vgpr73_vgpr74_vgpr75_vgpr76_vgpr77_vgpr78_vgpr79 = V_MFMA_F32_16X16X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35_vgpr36_vgpr37_vgpr38_vgpr39_vgpr40_vgpr41_vgpr42_vgpr43_vgpr44_vgpr45_vgpr46_vgpr47, 0, 0, 0, implicit $mode, implicit $exec
	ds_write_b32 v2, v65 //mir: DS_WRITE_B32_gfx9 $vgpr2, $vgpr65, 0, 0, implicit $exec

	v_mfma_f32_16x16x4f16 v[64:79], v[4:5], v[6:7], v[32:47] //mir: $vgpr64_vgpr65_vgpr66_vgpr67_vgpr68_vgpr69_vgpr70_vgpr71_vgpr72_vgpr73_vgpr74_vgpr75_vgpr76_vgpr77_vgpr78_vgpr79 = V_MFMA_F32_16X16X4F16_vgprcd_e64 $vgpr4_vgpr5, $vgpr6_vgpr7, $vgpr32_vgpr33_vgpr34_vgpr35_vgpr36_vgpr37_vgpr38_vgpr39_vgpr40_vgpr41_vgpr42_vgpr43_vgpr44_vgpr45_vgpr46_vgpr47, 0, 0, 0, implicit $mode, implicit $exec
	global_store_dword v[2:3], v65, off //mir: GLOBAL_STORE_DWORD $vgpr2_vgpr3, $vgpr65, 0, 0, implicit $exec
