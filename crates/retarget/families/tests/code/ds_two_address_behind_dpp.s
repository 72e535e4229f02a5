// A move between lanes takes values of other lanes, and lanes without a source keep theirs: no alignment is known.
v_lshlrev_b32 v1, 4, v0
v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 row_shl:1 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 row_ror:3 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 row_mirror row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 row_half_mirror row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 quad_perm:[3,2,1,0] row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 row_share:3 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 row_xmask:3 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0x3 bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0x5 fi:1
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 dpp8:[7,6,5,4,3,2,1,0]
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mov_b32_dpp v2, v1 dpp8:[7,6,5,4,3,2,1,0] fi:1
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_lshlrev_b32_dpp v2, v3, v1 row_shr:1 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_add_nc_u32_dpp v2, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_add_nc_u32_dpp v2, v1, v1 dpp8:[7,6,5,4,3,2,1,0]
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_sub_nc_u32_dpp v2, v1, v1 row_ror:1 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_or_b32_dpp v2, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_and_b32_dpp v2, v1, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_xor_b32_dpp v2, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_mul_u32_u24_dpp v2, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_lshl_add_u32_e64_dpp v2, v1, 4, v1 row_shr:1 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_add3_u32_e64_dpp v2, v1, v1, v1 dpp8:[7,6,5,4,3,2,1,0]
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_and_or_b32_e64_dpp v2, v1, v1, v1 row_shr:1 row_mask:0xf bank_mask:0xf
ds_load_2addr_b32 v[4:5], v2 offset1:5
v_add_nc_u32 v3, v2, v1
ds_load_2addr_b32 v[4:5], v3 offset1:5
s_endpgm
