// The older load may return after the address was written into v2. Another register is free for it.
// free: v9
ds_load_b32 v2, v1 offset:64
ds_load_addtid_b32 v2 offset:16
s_endpgm
