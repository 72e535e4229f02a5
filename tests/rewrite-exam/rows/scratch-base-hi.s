	s_mov_b32 s103, 0
	//fixed: s_wait_alu depctr_sa_sdst(0) depctr_va_sdst(0)
	s_mov_b32 s0, src_flat_scratch_base_hi
