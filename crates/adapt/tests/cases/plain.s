// Nothing to do: what compilers write at the begin of a kernel stays.
s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1
v_mov_b32 v0, 1
s_endpgm
