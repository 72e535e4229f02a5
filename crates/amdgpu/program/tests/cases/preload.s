// gfx942 link
// A kernel whose arguments are preloaded has a second entry 256 bytes on.
.globl k
.protected k
.p2align 8
.type k,@function
k:
  s_load_dwordx2 s[8:9], s[4:5], 0x0
  s_branch second
  .fill 60, 4, 0xbf800000
.p2align 8
second:
  s_endpgm
.size k, .-k
.section .rodata,"a"
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 4
  .amdhsa_accum_offset 4
  .amdhsa_next_free_sgpr 12
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_user_sgpr_kernarg_preload_length 2
  .amdhsa_user_sgpr_kernarg_preload_offset 0
.end_amdhsa_kernel
