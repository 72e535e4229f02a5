// v40 and v41 are written later, so they hold no value, but outstanding loads write them first. v42 is free.
// vgprs: 43
global_load_b32 v40, v[2:3], off
ds_load_b32 v41, v1
v_cvt_f32_fp8_e64 v5, v6 byte_sel:1 clamp
s_wait_loadcnt 0x0
v_cvt_f32_fp8_e64 v7, v6 byte_sel:2 clamp
s_wait_dscnt 0x0
v_add_f32 v40, v40, v41
global_store_b32 v[2:3], v[40], off
s_endpgm
