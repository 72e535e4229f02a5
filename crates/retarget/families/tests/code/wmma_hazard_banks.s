// v[0:7] of bank 1 is another register than v[0:7] of bank 0.
s_set_vgpr_msb 0x40
v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[8:15], v[16:23], v[24:31]
v_add_f32 v42, v0, v43
s_set_vgpr_msb 0x4041
v_add_f32 v42, v0, v43
s_endpgm
