// The target of the jump is unknown, so it is unknown whether the pair of loads is executed.
s_set_pc_i64 s[4:5]
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_endpgm
