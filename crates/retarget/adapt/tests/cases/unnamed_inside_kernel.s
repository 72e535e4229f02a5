// As above, but within the range of the kernel's symbol, after its end and before more of its code.
s_cbranch_scc0 .Lmore
s_load_b64 s[4:5], s[0:1], 0x0
s_wait_kmcnt 0x0
s_swap_pc_i64 s[30:31], s[4:5]
s_endpgm
s_wait_loadcnt_dscnt 0x0
s_wait_kmcnt 0x0
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
s_set_pc_i64 s[30:31]
.Lmore:
v_mov_b32 v4, 0
s_load_b64 s[4:5], s[0:1], 0x0
s_wait_kmcnt 0x0
s_swap_pc_i64 s[30:31], s[4:5]
s_endpgm
s_wait_loadcnt_dscnt 0x0
s_wait_kmcnt 0x0
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
s_set_pc_i64 s[30:31]
