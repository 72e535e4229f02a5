ds_storexchg_2addr_rtn_b32 v[6:7], v1, v2, v3 offset0:1 offset1:2
ds_storexchg_2addr_rtn_b64 v[6:9], v1, v[2:3], v[4:5] offset0:1 offset1:2
ds_storexchg_2addr_stride64_rtn_b32 v[6:7], v1, v2, v3 offset0:1 offset1:2
ds_storexchg_2addr_stride64_rtn_b64 v[6:9], v1, v[2:3], v[4:5] offset0:1 offset1:2
// The first result overlaps a register that the second access reads.
ds_storexchg_2addr_rtn_b32 v[2:3], v1, v4, v2 offset0:1 offset1:2
s_endpgm
