	s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 4), 0
	//fixed: s_nop 0
	s_set_vgpr_msb 0x1
	s_nop 0
	s_set_vgpr_msb 0x100
