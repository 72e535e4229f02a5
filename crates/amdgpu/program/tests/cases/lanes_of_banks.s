// gfx1250 link
// An address is written to lanes of v264 and read from the same lanes of v8: one
// number in the encoding, two registers. The target of that jump is unknown.
	.text
	.p2align 8
	.globl other_bank
	.type other_bank,@function
other_bank:
	s_get_pc_i64 s[4:5]
.Lpc:
	s_add_co_u32 s4, s4, .Lthere-.Lpc
	s_add_co_ci_u32 s5, s5, 0
	s_set_vgpr_msb 0x40
	v_writelane_b32 v8, s4, 0
	v_writelane_b32 v8, s5, 1
	s_set_vgpr_msb 0x4000
	v_readlane_b32 s6, v8, 0
	v_readlane_b32 s7, v8, 1
	s_set_pc_i64 s[6:7]
.Lthere:
	s_endpgm
.Lend_other_bank:
	.size other_bank, .Lend_other_bank-other_bank

// Without bank modes the lanes of a register are tracked.
	.p2align 8
	.globl one_bank
	.type one_bank,@function
one_bank:
	s_get_pc_i64 s[4:5]
.Lpc_one:
	s_add_co_u32 s4, s4, .Lthere_one-.Lpc_one
	s_add_co_ci_u32 s5, s5, 0
	v_writelane_b32 v8, s4, 0
	v_writelane_b32 v8, s5, 1
	v_readlane_b32 s6, v8, 0
	v_readlane_b32 s7, v8, 1
	s_set_pc_i64 s[6:7]
.Lthere_one:
	s_endpgm
.Lend_one_bank:
	.size one_bank, .Lend_one_bank-one_bank

// So are they if every mode change selects the first bank again, as at the start of all LLVM kernels for gfx1250.
	.p2align 8
	.globl first_bank
	.type first_bank,@function
first_bank:
	s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1
	s_get_pc_i64 s[4:5]
.Lpc_first:
	s_add_co_u32 s4, s4, .Lthere_first-.Lpc_first
	s_add_co_ci_u32 s5, s5, 0
	v_writelane_b32 v8, s4, 0
	v_writelane_b32 v8, s5, 1
	s_set_vgpr_msb 0
	v_readlane_b32 s6, v8, 0
	v_readlane_b32 s7, v8, 1
	s_set_pc_i64 s[6:7]
.Lthere_first:
	s_endpgm
.Lend_first_bank:
	.size first_bank, .Lend_first_bank-first_bank
