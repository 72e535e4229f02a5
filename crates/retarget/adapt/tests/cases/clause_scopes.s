// A clause over accesses of different scopes ends where the scope changes. Two and more of one scope stay together.
s_clause 0x1
global_load_b32 v1, v[2:3], off
global_load_b32 v4, v[2:3], off offset:4 scope:SCOPE_DEV
s_clause 0x3
global_load_b32 v5, v[2:3], off
global_load_b32 v6, v[2:3], off offset:4
global_load_b32 v7, v[2:3], off offset:8 scope:SCOPE_SYS
global_load_b32 v8, v[2:3], off offset:12 scope:SCOPE_SYS
// Between the runs the bank mode changes.
s_clause 0x3
global_load_b32 v9, v[2:3], off scope:SCOPE_SE
s_set_vgpr_msb 0x40
global_load_b32 v10, v[2:3], off offset:4
global_load_b32 v11, v[2:3], off offset:4
s_set_vgpr_msb 0x4000
s_clause 0x2
s_load_b32 s4, s[0:1], 0x0
s_load_b32 s5, s[0:1], 0x4 scope:SCOPE_DEV
s_load_b32 s6, s[0:1], 0x8
// One scope, whatever it is, and hints: nothing changes.
s_clause 0x2
global_load_b32 v12, v[2:3], off scope:SCOPE_DEV
global_load_b32 v13, v[2:3], off offset:4 th:TH_LOAD_NT scope:SCOPE_DEV
global_load_b32 v14, v[2:3], off offset:8 scope:SCOPE_DEV
s_endpgm
