s_mov_b32 m0, s3
cluster_load_b32 v1, v[2:3], off
s_mov_b32 m0, s3
s_set_vgpr_msb 0x41
cluster_load_b32 v1, v[2:3], off
s_endpgm
