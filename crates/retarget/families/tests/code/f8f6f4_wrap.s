v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7]
v_wmma_f32_16x16x128_f8f6f4 v[40:47], v[8:23], v[24:35], v[40:47] matrix_a_fmt:MATRIX_FMT_BF8 matrix_b_fmt:MATRIX_FMT_FP6
v_wmma_f32_16x16x128_f8f6f4 v[48:55], v[8:19], v[24:31], v[48:55] matrix_a_fmt:MATRIX_FMT_BF6 matrix_b_fmt:MATRIX_FMT_FP4 neg_lo:[0,0,1]
v_wmma_f32_16x16x128_f8f6f4 v[56:63], v[8:15], v[24:31], 1.0 matrix_a_fmt:MATRIX_FMT_FP4 matrix_b_fmt:MATRIX_FMT_FP4
// Has scales.
v_wmma_scale_f32_16x16x128_f8f6f4 v[64:71], v[8:23], v[24:39], v[64:71], v40, v41
// The mode does not matter, nor whether it is known.
s_cbranch_scc0 meet
s_set_vgpr_msb 0x41
meet:
v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7] neg_hi:[0,0,1]
s_endpgm
