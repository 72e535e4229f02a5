// M0 is read again later.
// free: s[40:41]
// live: m0
cluster_load_b32 v1, v[2:3], off
cluster_load_b64 v[4:5], v[2:3], off offset:16
cluster_load_b128 v[4:7], v2, s[4:5] offset:8
cluster_load_async_to_lds_b8 v1, v[2:3], off
cluster_load_async_to_lds_b32 v1, v[2:3], off
cluster_load_async_to_lds_b64 v1, v[2:3], off
cluster_load_async_to_lds_b128 v1, v2, s[4:5] offset:8 th:TH_LOAD_NT scope:SCOPE_SE
s_endpgm
