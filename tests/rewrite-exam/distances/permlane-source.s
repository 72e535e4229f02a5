	v_mov_b32_e32 v1, v2 //mir: $vgpr1 = V_MOV_B32_e32 $vgpr2, implicit $exec
	v_permlane16_swap_b32_e32 v0, v1 //mir: $vgpr0, $vgpr1 = V_PERMLANE16_SWAP_B32_e32 $vgpr0, $vgpr1, implicit $exec

	v_mov_b32_e32 v0, v2 //mir: $vgpr0 = V_MOV_B32_e32 $vgpr2, implicit $exec
	v_permlane32_swap_b32_e64 v0, v1 bound_ctrl:1 fi:1 //mir: $vgpr0, $vgpr1 = V_PERMLANE32_SWAP_B32_e64 $vgpr0, $vgpr1, -1, 1, implicit $exec
