v_cvt_scale_pk8_f32_fp8 v[0:7], v[8:9], v10 scale_sel:7
v_cvt_scale_pk8_f32_fp4 v[0:7], v8, v10 scale_sel:3
v_cvt_scale_pk16_f32_bf6 v[0:15], v[20:22], v30 scale_sel:3
s_endpgm
