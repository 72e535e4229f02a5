// In a loop, and at the end of the function.
loop:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
v_add_f32 v4, v2, v3
s_sub_co_u32 s0, s0, 1
s_cbranch_scc1 loop
ds_store_2addr_b32 v1, v4, v4 offset1:9
s_endpgm
