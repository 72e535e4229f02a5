// Where the jump leads is not known, so whether the pair of loads is executed is not either.
s_set_pc_i64 s[4:5]
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_endpgm
