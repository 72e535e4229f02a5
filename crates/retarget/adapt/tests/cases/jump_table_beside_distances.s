// Relocations of distances point into the kernel, too: their results, and whether they reach memory, are unknown.
s_get_pc_i64 s[6:7]
s_add_nc_u64 s[6:7], s[6:7], table1@rel64+4
s_load_b64 s[4:5], s[6:7], s8
ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
s_wait_dscnt 0x0
s_wait_kmcnt 0x0
s_set_pc_i64 s[4:5]
.La1:
ds_load_2addr_b32 v[2:3], v0 offset0:5 offset1:40
s_wait_dscnt 0x0
.Lb1:
global_store_b64 v1, v[2:3], s[2:3]
s_endpgm
.section .data.rel.ro,"aw"
.p2align 3
table1:
.quad .La1, .Lb1
.long .La1 - table1
.text
