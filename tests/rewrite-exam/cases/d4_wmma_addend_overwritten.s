// C of a matrix instruction is overwritten one instruction later, which is enough for the second stepping and not for the
// first: LLVM 24 keeps that distance as for A and B (llvm#222932).
k:
	v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[8:15], v[16:23], v[24:31]
	v_nop
	v_mov_b32_e32 v24, 0
	global_store_b128 v32, v[0:3], s[2:3]
	s_endpgm
