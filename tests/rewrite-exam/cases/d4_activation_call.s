// One of several functions is chosen and called, as activation functions of libraries are (LIB11484).
k:
	s_get_pc_i64 s[4:5]
	s_add_nc_u64 s[4:5], s[4:5], relu-.
	s_get_pc_i64 s[6:7]
	s_add_nc_u64 s[6:7], s[6:7], square-.
	s_cmp_eq_u32 s8, 0
	s_cselect_b64 s[4:5], s[4:5], s[6:7]
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	s_swap_pc_i64 s[30:31], s[4:5]
	global_store_b64 v1, v[2:3], s[2:3]
	s_endpgm
.Lk_end:
	.p2align 2
	.type relu,@function
relu:
	v_max_num_f32 v2, 0, v2
	s_set_pc_i64 s[30:31]
.Lrelu_end:
	.size relu, .Lrelu_end-relu
	.type square,@function
square:
	ds_load_2addr_b32 v[4:5], v0 offset0:5 offset1:40
	s_wait_dscnt 0x0
	v_mul_f32 v2, v2, v4
	s_set_pc_i64 s[30:31]
.Lsquare_end:
	.size square, .Lsquare_end-square
