// free: v[100:103], s[40:42]
v_cvt_pk_fp8_f32 v5, v1, v2 clamp
v_cvt_pk_fp8_f32 v5, v1, s2 op_sel:[0,0,1] clamp
v_cvt_pk_fp8_f32 v5, 1.0, 0x3f8ccccd clamp
// Not UE5M3.
v_cvt_pk_fp8_f32 v5, v1, v2
s_endpgm
