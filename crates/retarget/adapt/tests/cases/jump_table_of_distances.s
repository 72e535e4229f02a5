// A table of distances relative to itself: no relocation of a whole address shows to which code they point.
s_get_pc_i64 s[6:7]
s_add_nc_u64 s[6:7], s[6:7], table@rel64+4
s_load_b32 s4, s[6:7], s8
s_wait_kmcnt 0x0
s_ashr_i32 s5, s4, 31
s_add_nc_u64 s[4:5], s[4:5], s[6:7]
s_set_pc_i64 s[4:5]
.Lone:
ds_load_2addr_b32 v[2:3], v1 offset1:9
.Ltwo:
s_endpgm
.section .data.rel.ro,"aw"
table:
.long .Lone - table, .Ltwo - table
.text
