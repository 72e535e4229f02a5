// The program separates instructions itself: both accesses are waited for, whatever it waits for later.
// scheduling: program
ds_load_2addr_b32 v[2:3], v1 offset0:1 offset1:9
ds_store_2addr_b32 v1, v4, v5 offset0:2 offset1:9
s_wait_dscnt 0x1
s_endpgm
