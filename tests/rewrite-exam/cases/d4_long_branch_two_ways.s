// Long branches that a condition skips, and that ask for the sign of their distance, as Tensile's generator writes them
// where it does not know which way a label is (LIB11484).
.macro either label
	s_get_pc_i64 s[4:5]
	s_add_co_i32 s6, \label, 0x4
	s_cmp_ge_i32 s6, 0
	s_cbranch_scc1 .Lpositive\@
	s_abs_i32 s6, s6
	s_sub_co_u32 s4, s4, s6
	s_sub_co_ci_u32 s5, s5, 0
	s_set_pc_i64 s[4:5]
.Lpositive\@:
	s_add_co_u32 s4, s4, s6
	s_add_co_ci_u32 s5, s5, 0
	s_set_pc_i64 s[4:5]
.endm
k:
	s_mov_b32 s7, 0
.Lloop:
	s_cmp_lt_u32 s7, 2
	s_cbranch_scc1 .Lgo_on
	either .Lfar
.Lgo_on:
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_wait_dscnt 0x0
	global_store_b64 v1, v[2:3], s[2:3]
	s_add_co_u32 s7, s7, 1
	s_cmp_lg_u32 s7, 9
	s_cbranch_scc0 .Lout
	either .Lloop
.Lout:
	s_endpgm
.Lfar:
	ds_load_2addr_b32 v[2:3], v0 offset0:5 offset1:40
	s_wait_dscnt 0x0
	global_store_b64 v1, v[2:3], s[2:3] offset:8
	s_endpgm
