// No work: code that compilers emit at the start of a kernel is unchanged.
s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1
v_mov_b32 v0, 1
s_endpgm
