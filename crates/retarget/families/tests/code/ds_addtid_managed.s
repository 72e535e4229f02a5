// The program waits for vector results itself.
// free: v[100:101]
// scheduling: program
ds_load_addtid_b32 v2 offset:16
ds_store_addtid_b32 v2 offset:16
s_endpgm
