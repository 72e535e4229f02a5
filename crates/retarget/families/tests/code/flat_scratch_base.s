// free: s[40:43]
s_mov_b64 s[2:3], src_flat_scratch_base_lo
v_add_nc_u64 v[2:3], src_flat_scratch_base_lo, v[4:5]
v_lshl_add_u64 v[2:3], src_flat_scratch_base_lo, 2, v[4:5]
v_mov_b32 v1, src_flat_scratch_base_lo
v_mov_b32 v1, src_flat_scratch_base_hi
v_mov_b32 v1, 0xe6
s_endpgm
