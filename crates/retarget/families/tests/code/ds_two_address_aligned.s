// Addresses that are multiples of the element size.
v_lshlrev_b32 v1, 2, v0
ds_load_2addr_b32 v[2:3], v1 offset1:9
v_lshlrev_b32 v1, 3, v0
v_add_nc_u32 v1, 0x100, v1
ds_load_2addr_b64 v[4:7], v1 offset1:9
ds_store_2addr_stride64_b32 v1, v2, v3 offset1:1
v_mov_b32 v9, 0x40
v_and_b32 v1, -8, v8
v_lshl_add_u32 v1, v1, 1, v9
ds_storexchg_2addr_rtn_b64 v[4:7], v1, v[2:3], v[2:3] offset1:3
v_mul_u32_u24 v1, 24, v8
ds_load_2addr_b64 v[4:7], v1 offset1:9
s_endpgm
