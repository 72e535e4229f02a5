	s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2
	v_add_nc_u32_e32 v1, v2, v3
	//fixed: s_wait_alu depctr_va_vdst(0)
	global_load_async_to_lds_b32 v1, v4, s[2:3]
	s_wait_asynccnt 0x0
