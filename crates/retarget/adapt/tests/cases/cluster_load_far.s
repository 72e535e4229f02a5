// M0 is 0 for the second load as well, however much code grows between the two.
s_mov_b32 m0, 0
cluster_load_b32 v1, v[2:3], off
s_wait_loadcnt 0x0
v_cvt_pk_fp8_f32 v5, v1, v4 clamp
v_cvt_pk_fp8_f32 v6, v1, v4 clamp
v_cvt_pk_fp8_f32 v7, v1, v4 clamp
v_cvt_pk_fp8_f32 v8, v1, v4 clamp
v_cvt_pk_fp8_f32 v9, v1, v4 clamp
v_cvt_pk_fp8_f32 v10, v1, v4 clamp
cluster_load_b32 v11, v[2:3], off offset:8
global_store_b64 v[2:3], v[6:7], off
s_endpgm
