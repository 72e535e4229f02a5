// gfx90a gfx1030 link
// Hand-written libraries add a number to the distance first, or subtract its absolute value.
.type f,@function
f:
  s_nop 0
back:
  s_getpc_b64 s[4:5]
post:
  s_add_i32 s6, ahead-post-4, 4
  s_add_u32 s4, s4, s6
  s_addc_u32 s5, s5, 0
  s_setpc_b64 s[4:5]
  .long 0
ahead:
  s_cbranch_scc1 done
  s_getpc_b64 s[4:5]
post2:
  s_add_i32 s6, back-post2, 0
  s_abs_i32 s6, s6
  s_sub_u32 s4, s4, s6
  s_subb_u32 s5, s5, 0
  s_setpc_b64 s[4:5]
done:
  s_endpgm
.size f, .-f
