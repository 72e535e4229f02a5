// Nothing refers to it: the file has no jump or call through registers. It is unchanged and counted.
s_nop 1
s_endpgm
.text 1
.p2align 4
v_mov_b32 v4, 0
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
s_endpgm
.text 0
