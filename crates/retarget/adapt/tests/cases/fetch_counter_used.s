// The same program counter is stored as well, for an unknown use.
s_get_pc_i64 s[24:25]
s_prefetch_inst s[24:25], 0x40, null, 31
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
v_mov_b32 v2, s24
global_store_b32 v[4:5], v2, off
s_endpgm
