// gfx1250 link
// `keeps` keeps an address in s[64:65] over a call of `callee`, as the convention allows. That
// this callee overwrites them is seen only when its jump target is known, which requires the
// registers that `again` writes, which calls it in turn: so late that `keeps` was analysed before.
	.text
	.p2align 8
	.globl keeps
	.type keeps,@function
keeps:
	s_get_pc_i64 s[64:65]
.Lpc_keeps:
	s_add_co_u32 s64, s64, .Lthere_keeps-.Lpc_keeps
	s_add_co_ci_u32 s65, s65, 0
	s_get_pc_i64 s[4:5]
.Lpc_call:
	s_add_co_u32 s4, s4, callee-.Lpc_call
	s_add_co_ci_u32 s5, s5, 0
	s_swap_pc_i64 s[30:31], s[4:5]
	s_set_pc_i64 s[64:65]
.Lthere_keeps:
	s_endpgm
.Lend_keeps:
	.size keeps, .Lend_keeps-keeps

	.p2align 8
	.type callee,@function
callee:
	s_mov_b64 s[22:23], s[30:31]
	v_writelane_b32 v40, s48, 0
	v_writelane_b32 v40, s49, 1
	s_cbranch_scc1 .Lreturn
	s_get_pc_i64 s[48:49]
.Lpc_callee:
	s_add_co_u32 s48, s48, .Lthere_callee-.Lpc_callee
	s_add_co_ci_u32 s49, s49, 0
	s_get_pc_i64 s[4:5]
.Lpc_again:
	s_add_co_u32 s4, s4, again-.Lpc_again
	s_add_co_ci_u32 s5, s5, 0
	s_swap_pc_i64 s[30:31], s[4:5]
	s_set_pc_i64 s[48:49]
	s_nop 0
.Lthere_callee:
	s_mov_b64 s[64:65], 0
.Lreturn:
	v_readlane_b32 s48, v40, 0
	v_readlane_b32 s49, v40, 1
	s_set_pc_i64 s[22:23]
.Lend_callee:
	.size callee, .Lend_callee-callee

	.p2align 8
	.type again,@function
again:
	s_cbranch_scc1 .Lback
	s_mov_b64 s[24:25], s[30:31]
	s_get_pc_i64 s[6:7]
.Lpc_back:
	s_sub_co_u32 s6, s6, .Lpc_back-callee
	s_sub_co_ci_u32 s7, s7, 0
	s_swap_pc_i64 s[30:31], s[6:7]
	s_set_pc_i64 s[24:25]
.Lback:
	s_set_pc_i64 s[30:31]
.Lend_again:
	.size again, .Lend_again-again
