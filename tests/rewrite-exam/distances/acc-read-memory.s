	v_accvgpr_read_b32 v65, a2 //mir: $vgpr65 = V_ACCVGPR_READ_B32_e64 $agpr2, implicit $exec
	global_store_dword v[2:3], v65, off //mir: GLOBAL_STORE_DWORD $vgpr2_vgpr3, $vgpr65, 0, 0, implicit $exec
