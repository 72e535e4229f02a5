// The older load may return after the address was written into v2: LDS answers in order, so the program need not wait.
// vgprs: 3
ds_load_b32 v2, v1 offset:64
ds_load_addtid_b32 v2 offset:16
s_wait_dscnt 0x0
global_store_b32 v[0:1], v2, off
s_endpgm
