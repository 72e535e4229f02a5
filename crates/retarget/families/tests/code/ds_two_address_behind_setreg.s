// Directly after a write of MODE the hardware may drop a bank change, so an instruction is put in between.
s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 4), 3
ds_load_2addr_b64 v[254:257], v254 offset1:9
s_endpgm
