v_wmma_f32_16x16x128_fp8_fp8 v[0:7], v[8:23], v[24:39], v[0:7]
v_wmma_f32_16x16x128_fp8_bf8 v[40:47], v[8:23], v[24:39], v[40:47] neg_lo:[0,0,1]
v_wmma_f32_16x16x128_bf8_fp8 v[48:55], v[8:23], v[24:39], v[48:55] matrix_a_reuse matrix_b_reuse
v_wmma_f32_16x16x128_bf8_bf8 v[56:63], v[8:23], v[24:39], 1.0
s_set_vgpr_msb 0x41
v_wmma_f32_16x16x128_fp8_fp8 v[0:7], v[250:265], v[24:39], v[64:71]
s_endpgm
