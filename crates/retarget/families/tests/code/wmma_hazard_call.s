// The callee may read the result at once.
v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[8:15], v[16:23], v[0:7]
s_swap_pc_i64 s[30:31], s[2:3]
v_wmma_i32_16x16x64_iu8 v[0:7], v[8:15], v[16:23], v[0:7]
s_set_pc_i64 s[30:31]
