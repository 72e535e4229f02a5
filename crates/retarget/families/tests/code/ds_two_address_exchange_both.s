// Each writes a register that the other reads.
ds_storexchg_2addr_rtn_b32 v[2:3], v1, v3, v2 offset0:1 offset1:2
s_endpgm
