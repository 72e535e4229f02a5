v_cvt_scale_pk8_f32_fp8 v[0:7], v[8:9], v10 scale_sel:8
v_cvt_scale_pk8_f16_bf8 v[0:3], v[8:9], v10 scale_sel:15
v_cvt_scale_pk8_bf16_fp4 v[0:3], v8, v10 scale_sel:4
v_cvt_scale_pk16_f32_fp6 v[0:15], v[20:22], v30 scale_sel:7
v_cvt_scale_pk16_f16_bf6 v[0:7], v[20:22], v30 scale_sel:4
s_endpgm
