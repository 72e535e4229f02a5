// Reads the result, with one counted instruction in between.
v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[8:15], v[16:23], v[0:7]
v_mov_b32 v40, v41
v_add_f32 v42, v0, v43
// Writes A.
v_wmma_f32_16x16x64_bf8_bf8 v[0:7], v[8:15], v[16:23], v[0:7]
v_mov_b32 v9, 0
// A matrix instruction reads the result as B.
v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[8:15], v[16:23], v[0:7]
v_wmma_f32_16x16x64_fp8_fp8 v[48:55], v[8:15], v[0:7], v[48:55]
// As C: no distance.
v_wmma_f32_16x16x64_fp8_fp8 v[48:55], v[8:15], v[16:23], v[48:55]
s_endpgm
