// free: v[100:101], s40
v_cvt_f32_fp8_e64 v5, v1 clamp
v_cvt_f32_fp8_e64 v5, v5 byte_sel:1 clamp
v_cvt_f32_fp8_e64 v5, v1 byte_sel:2 clamp
v_cvt_f32_fp8_e64 v5, s1 byte_sel:3 clamp
v_cvt_f32_fp8_e64 v5, v1 byte_sel:3
v_cvt_f32_fp8_e32 v5, v1
s_endpgm
