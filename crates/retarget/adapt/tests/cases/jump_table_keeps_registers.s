// Registers read only at a table's targets are live before the jump: of v0 to v7, v4 and v7 are free at the conversion.
// vgprs: 24
s_load_b64 s[4:5], s[0:1], s8
v_cvt_f32_fp8_e64 v5, v6 byte_sel:1 clamp
s_wait_kmcnt 0x0
s_set_pc_i64 s[4:5]
.Lone:
v_add_f32 v5, v5, v0
v_add_f32 v5, v5, v1
global_store_b32 v[2:3], v5, off
s_endpgm
.Ltwo:
v_add_f32 v5, v5, v1
global_store_b32 v[2:3], v5, off
s_endpgm
.section .data.rel.ro,"aw"
.quad .Lone, .Ltwo
.text
