// All eight vector registers are live, and a ninth costs no wave: descriptor and metadata count it afterwards.
// vgprs: 8
v_cvt_f32_fp8_e64 v5, v6 byte_sel:1 clamp
v_add_f32 v0, v0, v1
v_add_f32 v0, v0, v2
v_add_f32 v0, v0, v3
v_add_f32 v0, v0, v4
v_add_f32 v0, v0, v5
v_add_f32 v0, v0, v6
v_add_f32 v0, v0, v7
global_store_b32 v[2:3], v0, off
s_endpgm
