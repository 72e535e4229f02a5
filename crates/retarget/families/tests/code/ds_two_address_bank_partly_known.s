// Two modes meet, but nothing has to be switched.
s_cbranch_scc0 meet
s_set_vgpr_msb 0x10
meet:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_endpgm
