// A table of addresses, read in a loop. Code before the jump, at its targets, after them and
// in the loop grows, and the words of the table refer to the same instructions as before.
// sgprs: 32
ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
s_get_pc_i64 s[6:7]
s_add_nc_u64 s[6:7], s[6:7], table@rel64+4
s_wait_dscnt 0x0
.Lnext:
ds_load_2addr_b32 v[4:5], v0 offset0:2 offset1:17
s_load_b64 s[4:5], s[6:7], s8
s_wait_dscnt 0x0
s_wait_kmcnt 0x0
s_set_pc_i64 s[4:5]
.Lone:
ds_load_2addr_b32 v[2:3], v4 offset0:1 offset1:9
s_wait_dscnt 0x0
v_add_f32 v2, v2, v3
s_branch .Lnext
.Ltwo:
v_add_f32 v2, v2, v3
ds_load_2addr_b32 v[6:7], v4 offset0:5 offset1:40
s_wait_dscnt 0x0
.Lthree:
v_add_f32 v6, v2, v7
s_cbranch_scc1 .Lnext
s_branch .Lend
.Lfour:
v_wmma_i32_16x16x64_iu8 v[40:47], v[16:23], v[8:15], v[40:47]
.Lend:
v_add_f32 v40, v40, v41
ds_load_2addr_b32 v[8:9], v4 offset0:5 offset1:40
s_wait_dscnt 0x0
global_store_b64 v1, v[8:9], s[2:3]
s_endpgm
.section .data.rel.ro,"aw"
.p2align 3
table:
.quad .Lone, .Ltwo, .Lthree, .Lfour, .Lend
.text
