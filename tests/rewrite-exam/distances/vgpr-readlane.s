	v_mov_b32_e32 v1, v2 //mir: $vgpr1 = V_MOV_B32_e32 $vgpr2, implicit $exec
	v_readfirstlane_b32 s6, v1 //mir: $sgpr6 = V_READFIRSTLANE_B32 $vgpr1, implicit $exec
