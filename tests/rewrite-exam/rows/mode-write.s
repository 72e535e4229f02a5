	v_mov_b32_e32 v0, 0
	//fixed: v_nop
	//fixed: v_nop
	s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 4), 0
