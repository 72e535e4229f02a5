// No symbol covers the functions, and the call target is unknown: they are decoded from the end of the kernel on.
s_load_b64 s[4:5], s[0:1], 0x0
s_wait_kmcnt 0x0
s_swap_pc_i64 s[30:31], s[4:5]
s_endpgm
.text 1
.p2align 4
s_cbranch_scc0 .Lback
s_wait_loadcnt_dscnt 0x0
s_wait_kmcnt 0x0
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
s_set_pc_i64 s[30:31]
.Lback:
ds_store_2addr_b32 v1, v2, v3 offset1:9
s_set_pc_i64 s[30:31]
.p2align 4
s_wait_loadcnt_dscnt 0x0
s_wait_kmcnt 0x0
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
s_set_pc_i64 s[30:31]
.text 0
