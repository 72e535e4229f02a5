// Two modes meet, and the roles that the second store needs are among those that differ.
s_cbranch_scc0 meet
s_set_vgpr_msb 0x10
meet:
ds_store_2addr_b32 v1, v2, v3 offset1:9
s_endpgm
