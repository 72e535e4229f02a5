	v_readfirstlane_b32 s4, v0 //mir: $sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec
	v_add_u32_e32 v1, s4, v2 //mir: $vgpr1 = V_ADD_U32_e32 $sgpr4, $vgpr2, implicit $exec
