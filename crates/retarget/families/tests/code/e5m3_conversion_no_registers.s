// free: v[100:101], s40
v_cvt_pk_fp8_f32 v5, v1, v2 clamp
s_endpgm
