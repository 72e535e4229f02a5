// A jump by a table of addresses, in the middle of a function with places before it, at its targets and behind them.
k:
	s_get_pc_i64 s[8:9]
	s_add_nc_u64 s[8:9], s[8:9], table@rel64+4
	s_load_b64 s[4:5], s[8:9], s10
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	s_wait_kmcnt 0x0
	s_set_pc_i64 s[4:5]
.Lone:
	ds_load_2addr_b32 v[2:3], v0 offset0:5 offset1:40
	s_wait_dscnt 0x0
.Ltwo:
	global_store_b64 v1, v[2:3], s[2:3]
	ds_load_2addr_b32 v[4:5], v0 offset0:5 offset1:40
	s_wait_dscnt 0x0
.Lthree:
	global_store_b64 v1, v[2:3], s[2:3] offset:8
	s_endpgm
.section .data.rel.ro,"aw"
.p2align 3
.type table,@object
table:
	.quad .Lone, .Ltwo, .Lthree
.size table, 24
.text
