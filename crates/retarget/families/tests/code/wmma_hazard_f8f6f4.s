v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7], v40, v41
s_nop 3
v_mov_b32 v50, v51
s_mov_b32 s0, s1
v_readfirstlane_b32 s2, v7
// FP6 and FP6: fewer.
v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:19], v[24:35], v[0:7], v40, v41 matrix_a_fmt:MATRIX_FMT_FP6 matrix_b_fmt:MATRIX_FMT_BF6
v_mov_b32 v0, 0
// FP6 and FP8: many.
v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:19], v[24:39], v[0:7], v40, v41 matrix_a_fmt:MATRIX_FMT_FP6
v_mov_b32 v0, 0
// Scales may be overwritten.
v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7], v40, v41
v_mov_b32 v40, 0
// A store is no vector instruction.
global_store_b32 v44, v0, s[0:1]
s_endpgm
