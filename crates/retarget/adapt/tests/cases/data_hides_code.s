// The word before the label looks like the first half of an instruction, whose second half would be the pair of loads.
s_branch .Lgo
.long 0xcc33000a
.Lgo:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
v_add_f32 v2, v2, v3
global_store_b32 v[4:5], v2, off
s_endpgm
