// Nearly: each of these is one step short of a proof.
v_lshlrev_b32 v1, 2, v0
ds_load_2addr_b64 v[4:7], v1 offset1:9
v_lshlrev_b32 v1, 2, v0
v_add_nc_u32 v1, 2, v1
ds_load_2addr_b32 v[2:3], v1 offset1:9
// EXEC differs: other lanes keep their old values.
v_lshlrev_b32 v1, 2, v0
s_mov_b32 exec_lo, s0
ds_load_2addr_b32 v[2:3], v1 offset1:9
// A branch target.
v_lshlrev_b32 v1, 2, v0
again:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_cbranch_scc0 again
// The bank differs.
v_lshlrev_b32 v1, 2, v0
s_set_vgpr_msb 1
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_endpgm
