v_nop
s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 4), 3
v_nop
v_nop
s_setreg_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), s0
s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2
s_round_mode 0x3
s_endpgm
