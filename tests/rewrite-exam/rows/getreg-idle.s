	v_add_nc_u32_e32 v1, v2, v3
	s_wait_alu depctr_va_vdst(0) //fixed: s_wait_alu 0x0
	s_getreg_b32 s0, hwreg(HW_REG_WAVE_STATE_PRIV)
