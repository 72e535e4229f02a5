ds_store_2addr_b32 v1, v2, v3 offset0:1 offset1:3
ds_store_2addr_b64 v1, v[2:3], v[4:5] offset0:1 offset1:3
ds_store_2addr_stride64_b32 v1, v2, v3 offset0:1 offset1:2
ds_store_2addr_stride64_b64 v1, v[2:3], v[4:5] offset0:1 offset1:2
// The same address twice: the second value stays.
ds_store_2addr_b32 v1, v2, v3 offset0:1 offset1:1
s_endpgm
