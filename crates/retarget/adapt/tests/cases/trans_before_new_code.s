// v10 is read by v_exp and dead after it, and the new code borrows it: it must not write it
// before one vector instruction has been issued. Scalar instructions in between do not count.
// vgprs: 11
v_exp_f32 v9, v10
v_cvt_f32_fp8_e64 v5, v6 byte_sel:1 clamp
v_add_f32 v0, v0, v1
v_add_f32 v0, v2, v3
v_add_f32 v0, v4, v5
v_add_f32 v0, v6, v7
v_add_f32 v0, v8, v9
v_exp_f32 v9, v3
s_nop 0
ds_store_addtid_b32 v9 offset:8
v_add_f32 v0, v0, v1
// The address is the result of a transcendental instruction, in the block before.
v_rcp_f32 v4, v9
s_cbranch_scc0 .Lpast
s_nop 0
.Lpast:
ds_load_2addr_stride64_b64 v[6:9], v4 offset0:255 offset1:254
s_wait_dscnt 0x0
global_store_b128 v[0:1], v[6:9], off
s_endpgm
