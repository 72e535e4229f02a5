// An s_delay_alu that counts over a changed place is dropped or weakened. Others are unchanged.
v_mov_b32 v1, v0
s_delay_alu instid0(VALU_DEP_1)
v_add_f32 v2, v1, v1
s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_2)
v_cvt_pk_fp8_f32 v5, v2, v1 clamp
v_add_f32 v3, v1, v2
s_delay_alu instid0(VALU_DEP_1) | instskip(SKIP_1) | instid1(VALU_DEP_2)
v_add_f32 v4, v3, v3
v_add_f32 v6, v5, v5
ds_load_2addr_b32 v[8:9], v6 offset1:9
v_add_f32 v7, v4, v6
s_endpgm
