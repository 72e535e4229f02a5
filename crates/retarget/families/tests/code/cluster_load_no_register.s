// live: m0
cluster_load_b32 v1, v[2:3], off
s_endpgm
