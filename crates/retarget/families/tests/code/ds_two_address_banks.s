// Data of the second access has another role in the instruction that replaces it.
s_set_vgpr_msb 0x10
ds_store_2addr_b32 v1, v2, v3 offset1:9
s_set_vgpr_msb 0x1054
ds_store_2addr_b64 v1, v[2:3], v[4:5] offset1:9
// All in one bank.
s_set_vgpr_msb 0x54ff
ds_storexchg_2addr_rtn_b32 v[6:7], v1, v2, v3 offset0:1 offset1:2
// The second half is in the next bank.
s_set_vgpr_msb 0xff00
ds_load_2addr_b64 v[254:257], v1 offset1:9
ds_store_2addr_b32 v1, v2, v3 offset1:1
s_set_vgpr_msb 0x10
ds_store_2addr_b32 v1, v2, v3 offset1:1
s_endpgm
