	s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2
	v_add_nc_u32_e32 v1, v2, v3
	v_add_nc_u32_e32 v5, v2, v3
	s_wait_alu depctr_va_vdst(2) //fixed: s_wait_alu depctr_va_vdst(1)
	ds_store_b32 v4, v1
