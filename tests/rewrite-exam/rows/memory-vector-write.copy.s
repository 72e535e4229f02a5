	s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2
	global_load_async_to_lds_b128 v1, v4, s[2:3]
	//fixed: s_wait_alu depctr_vm_vsrc(0)
	v_add_nc_u32_e32 v4, 16, v4
	s_wait_asynccnt 0x0
