// A prefetch points into an instruction that is replaced: afterwards it points
// to the replacement. Another points outside of all code and is unchanged.
s_prefetch_inst_pc_rel 0x14, s0, 0
s_prefetch_inst_pc_rel 0x7ffff0, s0, 0
s_prefetch_inst_pc_rel -0x2000, s0, 0
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
v_add_f32 v2, v2, v3
global_store_b32 v[4:5], v2, off
s_endpgm
