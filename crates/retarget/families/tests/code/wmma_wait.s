// scheduling: program
v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[8:15], v[16:23], v[0:7]
v_wmma_f32_16x16x32_f16 v[40:47], v[8:15], v[16:23], v[40:47]
v_wmma_scale_f32_16x16x128_f8f6f4 v[64:71], v[8:23], v[24:39], v[64:71], v48, v49
s_nop 0
s_wait_alu 0xfff
v_wmma_f32_16x16x128_f8f6f4 v[72:79], v[8:23], v[24:39], v[72:79]
s_wait_alu 0xf9f
s_endpgm
