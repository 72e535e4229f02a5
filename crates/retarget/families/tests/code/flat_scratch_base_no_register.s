// free: s41
v_add_nc_u64 v[2:3], src_flat_scratch_base_lo, v[4:5]
s_endpgm
