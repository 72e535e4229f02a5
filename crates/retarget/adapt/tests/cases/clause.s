// An s_clause keeps the members before a changed place. A single member is no clause.
s_clause 0x3
global_load_b32 v1, v[2:3], off
global_load_b32 v4, v[2:3], off offset:4
cluster_load_b32 v5, v[2:3], off offset:8
global_load_b32 v6, v[2:3], off offset:12
s_clause 0x1
cluster_load_b32 v7, v[2:3], off offset:8
global_load_b32 v8, v[2:3], off offset:12
s_clause 0x1
global_load_b32 v9, v[2:3], off
cluster_load_b32 v10, v[2:3], off offset:8
// Nothing changes after it.
s_clause 0x1
global_load_b32 v11, v[2:3], off
global_load_b32 v12, v[2:3], off
s_mov_b32 s4, m0
s_endpgm
