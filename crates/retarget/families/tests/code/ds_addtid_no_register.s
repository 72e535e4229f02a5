ds_store_addtid_b32 v2 offset:16
s_endpgm
