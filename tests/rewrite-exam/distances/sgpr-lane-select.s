	v_readfirstlane_b32 s4, v0 //mir: $sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec
	v_readlane_b32 s6, v1, s4 //mir: $sgpr6 = V_READLANE_B32 $vgpr1, $sgpr4

	v_readfirstlane_b32 s4, v0 //mir: $sgpr4 = V_READFIRSTLANE_B32 $vgpr0, implicit $exec
	v_writelane_b32 v1, 7, s4 //mir: $vgpr1 = V_WRITELANE_B32 7, $sgpr4, $vgpr1
