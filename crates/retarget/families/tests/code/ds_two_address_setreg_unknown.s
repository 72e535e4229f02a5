// The effect of a write of MODE on the banks is unknown.
s_set_vgpr_msb 0x10
s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 4), 3
ds_store_2addr_b32 v1, v2, v3 offset1:9
s_endpgm
