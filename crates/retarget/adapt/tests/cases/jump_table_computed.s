// A value is added to the address from a table.
s_load_b64 s[4:5], s[0:1], s8
s_wait_kmcnt 0x0
s_add_nc_u64 s[4:5], s[4:5], s[10:11]
s_set_pc_i64 s[4:5]
.Lone:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_endpgm
.section .data.rel.ro,"aw"
.quad .Lone
.text
