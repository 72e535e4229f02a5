	s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2
	ds_store_b32 v1, v2
	//fixed: s_wait_alu depctr_vm_vsrc(0)
	v_cvt_pk_bf16_f32 v2, v3, v4
