// gfx90a gfx1250 link
// One of several functions is chosen by a number and called, like activation functions
// of libraries: a branch for each loads its address, and the call follows elsewhere.
.if .amdgcn.gfx_generation_number >= 12
.macro getpc d
  s_get_pc_i64 s[\d:\d+1]
.endm
.macro setpc d
  s_set_pc_i64 s[\d:\d+1]
.endm
.macro swappc d, t
  s_swap_pc_i64 s[\d:\d+1], s[\t:\t+1]
.endm
.else
.macro getpc d
  s_getpc_b64 s[\d:\d+1]
.endm
.macro setpc d
  s_setpc_b64 s[\d:\d+1]
.endm
.macro swappc d, t
  s_swappc_b64 s[\d:\d+1], s[\t:\t+1]
.endm
.endif
.macro address label
  getpc 12
  s_add_i32 s8, \label, 4
  s_add_u32 s12, s12, s8
  s_addc_u32 s13, s13, 0
.endm
.type f,@function
f:
  s_cmp_eq_u32 s20, 1
  s_cbranch_scc1 .Lto_abs
  s_cmp_eq_u32 s20, 2
  s_cbranch_scc1 .Lto_relu
  address .Lnone
  s_branch .Lset
.Lto_abs:
  address .Labs
  s_branch .Lset
.Lto_relu:
  address .Lrelu
  s_branch .Lset
.Lset:
  v_mov_b32 v1, 1
  swappc 16, 12
  v_mov_b32 v2, v1
  swappc 16, 12
  s_endpgm
.Lnone:
  setpc 16
.Labs:
  v_and_b32 v1, 0x7fffffff, v1
  setpc 16
.Lrelu:
  v_max_i32 v1, 0, v1
  setpc 16
.size f, .-f
