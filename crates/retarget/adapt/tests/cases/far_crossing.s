// Operands above v255, and tuples that cross it.
// vgprs: 600
s_set_vgpr_msb 0x41
v_wmma_f32_16x16x128_fp8_fp8 v[0:7], v[8:23], v[24:39], v[0:7]
s_set_vgpr_msb 0x4100
v_wmma_f32_32x16x128_f4 v[240:255], v[96:111], v[112:119], v[240:255]
ds_load_2addr_b64 v[252:255], v1 offset1:9
s_set_vgpr_msb 0x40
ds_load_2addr_b32 v[0:1], v1 offset1:7
s_endpgm
