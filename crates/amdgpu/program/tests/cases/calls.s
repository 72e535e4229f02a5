// gfx906 gfx1030 gfx1201 link link-relocs
// Calls by a relocation, through the GOT, by s_call, and a tail call; a return address kept in lanes.
.hidden near
.type near,@function
near:
  v_mov_b32 v0, 1
  s_setpc_b64 s[30:31]
.size near, .-near
.protected seen
.globl seen
.type seen,@function
seen:
  s_mov_b32 s40, s33
  v_writelane_b32 v41, s30, 0
  v_writelane_b32 v41, s31, 1
  s_getpc_b64 s[16:17]
  s_add_u32 s16, s16, near@rel32@lo+4
  s_addc_u32 s17, s17, near@rel32@hi+12
  s_swappc_b64 s[30:31], s[16:17]
  s_swappc_b64 s[30:31], s[16:17]
  v_readlane_b32 s30, v41, 0
  v_readlane_b32 s31, v41, 1
  s_setpc_b64 s[30:31]
.size seen, .-seen
.type tail,@function
tail:
  s_getpc_b64 s[16:17]
  s_add_u32 s16, s16, near@rel32@lo+4
  s_addc_u32 s17, s17, near@rel32@hi+12
  s_setpc_b64 s[16:17]
.size tail, .-tail
.p2align 8
.type kernel,@function
.globl kernel
.protected kernel
kernel:
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, seen@gotpcrel32@lo+4
  s_addc_u32 s5, s5, seen@gotpcrel32@hi+12
  s_load_dwordx2 s[6:7], s[4:5], 0x0
  s_waitcnt lgkmcnt(0)
  s_swappc_b64 s[30:31], s[6:7]
  s_call_b64 s[8:9], own
  s_getpc_b64 s[16:17]
  s_add_u32 s16, s16, tail@rel32@lo+4
  s_addc_u32 s17, s17, tail@rel32@hi+12
  s_swappc_b64 s[30:31], s[16:17]
  s_endpgm
own:
  s_nop 3
  s_setpc_b64 s[8:9]
.size kernel, .-kernel
.section .rodata,"a"
.p2align 6
.amdhsa_kernel kernel
  .amdhsa_next_free_vgpr 42
  .amdhsa_next_free_sgpr 42
.end_amdhsa_kernel
