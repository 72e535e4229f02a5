// free: v[100:108], s40
v_wmma_f16_16x16x128_fp8_bf8 v[0:3], v[8:23], v[24:39], 7
s_endpgm
