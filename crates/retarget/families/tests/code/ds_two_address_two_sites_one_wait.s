ds_load_2addr_b32 v[2:3], v1 offset1:9
ds_load_2addr_b32 v[4:5], v1 offset0:2 offset1:9
s_wait_dscnt 0x1
v_add_f32 v2, v2, v3
s_wait_dscnt 0x0
v_add_f32 v4, v4, v5
s_endpgm
