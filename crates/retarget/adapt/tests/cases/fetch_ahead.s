// The distance of a prefetch grows with the code in between.
s_prefetch_inst_pc_rel 0x20, s0, 0
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
v_add_f32 v2, v2, v3
global_store_b32 v[4:5], v2, off
s_endpgm
