// gfx1250 link
// Additions of 64 bits, and the jump that adds to the program counter.
.type f,@function
f:
  s_get_pc_i64 s[4:5]
post:
  s_add_nc_u64 s[4:5], s[4:5], ahead-post
  s_set_pc_i64 s[4:5]
  .long 0
ahead:
  s_cbranch_scc1 next
  s_add_pc_i64 16
  .long 0, 0, 0, 0
  s_nop 1
  s_endpgm
next:
  s_get_pc_i64 s[8:9]
post3:
  s_add_co_u32 s8, s8, f-post3
  s_add_co_ci_u32 s9, s9, -1
  s_set_pc_i64 s[8:9]
.size f, .-f
