// free: s41, v[10:11], v[300:301]
v_add_nc_u64 v[2:3], src_flat_scratch_base_lo, v[2:3]
v_lshl_add_u64 v[4:5], v[2:3], 2, src_flat_scratch_base_lo
s_endpgm
