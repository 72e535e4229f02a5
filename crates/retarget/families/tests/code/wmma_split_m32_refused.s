v_wmma_f32_32x16x128_f4 v[32:47], v[16:31], v[32:39], 0
v_wmma_f32_32x16x128_f4 v[24:39], v[16:31], v[40:47], 0
v_wmma_scale_f32_32x16x128_f4 v[36:51], v[16:31], v[52:59], 0, v40, v44
v_wmma_scale_f32_32x16x128_f4 v[0:15], v[16:31], v[32:39], 0, v40, v41 matrix_a_scale:MATRIX_SCALE_ROW1
s_endpgm
