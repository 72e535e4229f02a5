// A clause holds accesses of one scope alone.
s_clause 0x3
global_load_b32 v2, v[0:1], off
global_load_b32 v3, v[0:1], off offset:4
global_load_b32 v4, v[0:1], off offset:8 scope:SCOPE_DEV
global_load_b32 v5, v[0:1], off offset:12
s_endpgm
