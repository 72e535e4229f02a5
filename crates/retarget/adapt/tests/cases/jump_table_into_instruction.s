// A word of the table points into an instruction.
s_load_b64 s[4:5], s[0:1], s8
s_wait_kmcnt 0x0
s_set_pc_i64 s[4:5]
.Lone:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_endpgm
.section .data.rel.ro,"aw"
.quad .Lone, .Lone + 4
.text
