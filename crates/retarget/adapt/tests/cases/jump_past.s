// The target of the jump is unknown, so it may be after the shift: the address may be anything.
v_lshlrev_b32 v1, 3, v1
s_cbranch_scc1 .Lgo
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_endpgm
.Lgo:
s_set_pc_i64 s[4:5]
