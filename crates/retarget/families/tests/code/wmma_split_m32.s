v_wmma_f32_32x16x128_f4 v[0:15], v[16:31], v[32:39], v[0:15]
v_wmma_f32_32x16x128_f4 v[48:63], v[16:31], v[32:39], 1.0 neg_lo:[0,0,1]
v_wmma_scale_f32_32x16x128_f4 v[64:79], v[16:31], v[32:39], v[64:79], v40, v41
v_wmma_scale_f32_32x16x128_f4 v[80:95], v[16:31], v[32:39], v[80:95], v40, s3 matrix_b_scale:MATRIX_SCALE_ROW1 matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3 matrix_b_scale_fmt:MATRIX_SCALE_FMT_E4M3
v_wmma_scale16_f32_32x16x128_f4 v[96:111], v[16:31], v[32:39], v[96:111], v[40:41], v[42:43]
// Crosses the end of a bank: 252 to 267.
v_wmma_f32_32x16x128_f4 v[252:267], v[16:31], v[32:39], v[252:267]
// Overlaps the upper rows of C: they come first.
v_wmma_f32_32x16x128_f4 v[56:71], v[16:31], v[32:39], v[48:63]
// The result overlaps the scales: the half that holds them comes last.
v_wmma_scale_f32_32x16x128_f4 v[36:51], v[16:31], v[52:59], 0, v40, v41
s_endpgm
