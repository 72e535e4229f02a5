// V_PERM_PK16 requires a plain vector instruction right after it, and new code may start with a wait.
v_perm_pk16_b4_u4 v[2:3], v8, v9, v[10:11]
v_cvt_f32_fp8_e64 v5, v6 byte_sel:1 clamp
v_perm_pk16_b4_u4 v[2:3], v8, v9, v[10:11]
ds_load_2addr_b32 v[6:7], v4 offset1:5
// No new code follows this one.
v_perm_pk16_b4_u4 v[2:3], v8, v9, v[10:11]
v_add_f32 v0, v0, v1
v_perm_pk16_b4_u4 v[2:3], v8, v9, v[10:11]
s_branch .Lthere
.Lthere:
ds_load_2addr_b32 v[8:9], v4 offset1:5
s_wait_dscnt 0x0
global_store_b128 v[0:1], v[6:9], off
global_store_b128 v[0:1], v[2:5], off
s_endpgm
