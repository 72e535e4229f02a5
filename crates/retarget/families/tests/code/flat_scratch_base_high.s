// free: s[40:41]
s_mov_b64 s[2:3], src_flat_scratch_base_hi
s_mov_b64 s[2:3], 0xe7
v_add_nc_u64 v[2:3], src_flat_scratch_base_hi, v[4:5]
v_lshl_add_u64 v[2:3], src_flat_scratch_base_hi, 2, v[4:5]
v_mov_b32 v1, src_flat_scratch_base_hi
s_endpgm
