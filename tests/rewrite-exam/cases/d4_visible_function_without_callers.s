// A visible function that nobody calls lies behind grown code: the second run changed the layout (two entries of a list).
k:
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	global_store_b64 v1, v[2:3], s[2:3]
	s_endpgm
.Lk_end:
	.p2align 4
	.globl spare
	.type spare,@function
spare:
	ds_load_2addr_b32 v[2:3], v0 offset0:5 offset1:40
	s_wait_dscnt 0x0
	v_mov_b32 v0, v2
	s_set_pc_i64 s[30:31]
.Lspare_end:
	.size spare, .Lspare_end-spare
