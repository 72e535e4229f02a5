// Scales of 16 elements are 64-bit sources: the base of scratch is none that the target reads in a vector instruction.
v_wmma_scale16_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7], src_flat_scratch_base_lo, v[42:43]
v_nop
v_nop
v_nop
v_nop
v_nop
v_nop
v_nop
v_nop
v_wmma_scale16_f32_16x16x128_f8f6f4 v[48:55], v[8:23], v[24:39], v[48:55], v[42:43], src_flat_scratch_base_hi
s_endpgm
