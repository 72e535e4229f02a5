// gfx1100 gfx1201 link link-relocs
// A kernel without calls: its jumps reach only the places named by words, and no other code reaches these.
.amdhsa_code_object_version 5
.globl k
.p2align 8
.type k,@function
k:
  s_load_dwordx2 s[4:5], s[0:1], s8
  s_nop 0
  s_cbranch_scc1 .Lother
  s_setpc_b64 s[4:5]
.Lone:
  s_load_dwordx2 s[4:5], s[0:1], s9
  s_nop 0
  s_branch .Lother
.Ltwo:
  s_endpgm
.Lother:
  s_mov_b64 s[10:11], s[4:5]
  s_setpc_b64 s[10:11]
.size k, .-k
.data
.quad .Lone, .Ltwo
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_next_free_vgpr 8
.amdhsa_next_free_sgpr 16

.end_amdhsa_kernel
