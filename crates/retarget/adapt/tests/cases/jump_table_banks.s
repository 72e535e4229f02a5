// The bank mode at the targets of a table is that of the jump, its only predecessor. The kernel's own branches agree.
// vgprs: 300
s_load_b64 s[4:5], s[0:1], s8
s_wait_kmcnt 0x0
s_set_vgpr_msb 0x40
s_set_pc_i64 s[4:5]
.Lone:
ds_load_2addr_b32 v[2:3] /*v[258:259]*/, v1 offset0:1 offset1:9
s_wait_dscnt 0x0
.Ltwo:
s_set_vgpr_msb 0
s_endpgm
.section .data.rel.ro,"aw"
.quad .Lone, .Ltwo
.text
