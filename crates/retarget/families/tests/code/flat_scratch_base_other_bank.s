// free: s41, v[10:11], v[300:301]
s_set_vgpr_msb 1
v_add_nc_u64 v[2:3], src_flat_scratch_base_lo, v[4:5]
s_endpgm
