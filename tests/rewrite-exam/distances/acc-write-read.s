	v_accvgpr_write_b32 a65, v2 //mir: $agpr65 = V_ACCVGPR_WRITE_B32_e64 $vgpr2, implicit $exec
	v_accvgpr_read_b32 v2, a65 //mir: $vgpr2 = V_ACCVGPR_READ_B32_e64 $agpr65, implicit $exec
