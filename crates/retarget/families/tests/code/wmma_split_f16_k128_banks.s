// free: v[300:308], s40
s_set_vgpr_msb 0x41
v_wmma_f16_16x16x128_fp8_fp8 v[0:3], v[8:23], v[24:39], v[0:3] neg_lo:[0,0,1] neg_hi:[0,0,1]
s_endpgm
