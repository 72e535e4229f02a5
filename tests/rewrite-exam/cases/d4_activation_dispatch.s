// One of several functions is chosen by branches, each of which brings an address, and called elsewhere: activation
// functions of libraries that are labels of the kernel itself (LIB11484).
.macro address label
	s_get_pc_i64 s[12:13]
	s_add_co_i32 s8, \label, 0x4
	s_add_co_u32 s12, s12, s8
	s_add_co_ci_u32 s13, s13, 0
.endm
k:
	s_cmp_eq_u32 s20, 1
	s_cbranch_scc1 .Lto_abs
	address .Lnone
	s_branch .Lset
.Lto_abs:
	address .Labs
	s_branch .Lset
.Lset:
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	s_swap_pc_i64 s[16:17], s[12:13]
	global_store_b64 v1, v[2:3], s[2:3]
	s_endpgm
.Lnone:
	s_set_pc_i64 s[16:17]
.Labs:
	v_and_b32 v2, 0x7fffffff, v2
	s_set_pc_i64 s[16:17]
