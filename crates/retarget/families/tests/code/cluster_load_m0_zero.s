// live: m0
s_mov_b32 m0, 0
cluster_load_b32 v1, v[2:3], off
v_mov_b32 v9, 1
cluster_load_b32 v1, v[2:3], off offset:4
s_endpgm
