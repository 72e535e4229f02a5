// free: v[100:101]
ds_load_addtid_b32 v2 offset:16
ds_store_addtid_b32 v2 offset:65535
s_set_vgpr_msb 0x48
ds_load_addtid_b32 v2
ds_store_addtid_b32 v2
s_endpgm
