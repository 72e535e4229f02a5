// Distances that were constants before the code grew (L3252): a call over grown code, and data in another section.
k:
	s_get_pc_i64 s[0:1]
	s_add_nc_u64 s[0:1], s[0:1], g-.
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	s_swap_pc_i64 s[30:31], s[0:1]
	s_get_pc_i64 s[4:5]
	s_add_nc_u64 s[4:5], s[4:5], table@rel64+4
	s_load_b32 s6, s[4:5], 0x0
	s_wait_kmcnt 0x0
	v_add_f32 v2, s6, v2
	global_store_b64 v1, v[2:3], s[2:3]
	s_endpgm
.Lk_end:
	.p2align 4
	.type g,@function
g:
	ds_load_2addr_b32 v[2:3], v0 offset0:2 offset1:12
	s_wait_dscnt 0x0
	s_set_pc_i64 s[30:31]
.Lg_end:
	.size g, .Lg_end-g
	.section .rodata
table:
	.long 7
