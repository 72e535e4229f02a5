// Every load that may be unaligned.
// free: v[100:101]
ds_load_2addr_b32 v[2:3], v1 offset0:1 offset1:3
ds_load_2addr_b64 v[4:7], v1 offset0:1 offset1:3
ds_load_2addr_stride64_b32 v[2:3], v1 offset0:1 offset1:2
ds_load_2addr_stride64_b64 v[4:7], v1 offset1:127
// The second offset does not fit 16 bits.
ds_load_2addr_stride64_b64 v[4:7], v1 offset1:128
// The first result overlaps the address: the second comes first.
ds_load_2addr_b32 v[2:3], v2 offset1:9
ds_load_2addr_b32 v[2:3], v3 offset1:9
ds_load_2addr_b64 v[4:7], v5 offset1:9
s_endpgm
