// gfx90a gfx1030 gfx1100 gfx1201 link
// LLVM's long branch, forward and backward, in both spellings of the addition.
.type f,@function
f:
  s_nop 0
back:
  s_getpc_b64 s[4:5]
post:
  s_add_u32 s4, s4, (ahead-post)&0xffffffff
  s_addc_u32 s5, s5, (ahead-post)>>32
  s_setpc_b64 s[4:5]
  .long 0
ahead:
  s_cbranch_scc1 done
  s_getpc_b64 s[6:7]
post2:
  s_add_u32 s6, s6, (back-post2)&0xffffffff
  s_addc_u32 s7, s7, (back-post2)>>32
  s_setpc_b64 s[6:7]
done:
  s_endpgm
.size f, .-f
