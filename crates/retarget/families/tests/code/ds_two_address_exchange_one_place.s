ds_storexchg_2addr_rtn_b32 v[6:7], v1, v3, v2 offset0:1 offset1:1
s_endpgm
