// free: v[100:104], s[40:42]
v_cvt_pk_fp8_f32 v5, -v1, v2 clamp
v_cvt_sr_fp8_f32 v5, |v1|, v2 clamp
s_endpgm
