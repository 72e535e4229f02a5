// The older load may return after the address was written into v2, and no other register is free.
ds_load_b32 v2, v1 offset:64
ds_load_addtid_b32 v2 offset:16
s_wait_dscnt 0x0
ds_load_addtid_b32 v2 offset:32
s_endpgm
