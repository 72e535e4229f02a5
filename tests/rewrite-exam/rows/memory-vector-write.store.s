	s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2
	buffer_store_b32 v1, v2, s[4:7], null offen
	//fixed: s_wait_storecnt 0x0
	v_and_b32_e32 v2, 15, v3
