// free: v[100:131], s[40:47]
// half mode: rounding
v_wmma_f16_16x16x128_fp8_fp8 v[2:5], v[10:25], v[26:41], v[2:5]
s_endpgm
