// A fetch ahead leads into an instruction that is replaced: it leads to what stands there now. Another leads out of
// everything and stays.
s_prefetch_inst_pc_rel 0x14, s0, 0
s_prefetch_inst_pc_rel 0x7ffff0, s0, 0
s_prefetch_inst_pc_rel -0x2000, s0, 0
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
v_add_f32 v2, v2, v3
global_store_b32 v[4:5], v2, off
s_endpgm
