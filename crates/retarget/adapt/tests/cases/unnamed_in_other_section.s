// A function without a symbol in a section of its own.
s_get_pc_i64 s[4:5]
s_add_nc_u64 s[4:5], s[4:5], .Lhelper@rel64+4
.Lagain:
s_swap_pc_i64 s[30:31], s[4:5]
s_sub_co_u32 s36, s36, 1
s_cbranch_scc1 .Lagain
s_endpgm
.section .text.helper,"ax",@progbits
.p2align 4
.Lhelper:
s_wait_loadcnt_dscnt 0x0
s_wait_kmcnt 0x0
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
s_set_pc_i64 s[30:31]
.text
