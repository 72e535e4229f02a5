// free: v[100:101], s40
s_set_vgpr_msb 0x41
v_cvt_f32_fp8_e64 v5, v1 clamp
s_endpgm
