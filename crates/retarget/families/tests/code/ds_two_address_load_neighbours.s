// Neighbours become one access.
ds_load_2addr_b32 v[2:3], v1 offset0:1 offset1:2
ds_load_2addr_b64 v[4:7], v1 offset1:1
ds_load_2addr_b64 v[4:7], v4 offset0:4 offset1:5
ds_store_2addr_b32 v1, v2, v3 offset1:1
ds_store_2addr_b64 v1, v[2:3], v[4:5] offset0:254 offset1:255
// Registers that are not neighbours, or start at an odd number, do not.
ds_store_2addr_b32 v1, v2, v4 offset1:1
ds_store_2addr_b32 v1, v3, v4 offset1:1
ds_store_2addr_b32 v1, v2, v2 offset1:1
// The stride is none.
ds_load_2addr_stride64_b32 v[2:3], v1 offset1:1
s_endpgm
