// gfx90a gfx1030 gfx1100 gfx1201 gfx1250
// A loop in a loop, and a branch over the end of one.
.type f,@function
f:
  s_mov_b32 s0, 0
outer:
  s_mov_b32 s1, 0
inner:
  s_add_i32 s1, s1, 1
  s_cmp_lt_i32 s1, 8
  s_cbranch_scc1 inner
  s_add_i32 s0, s0, 1
  s_cbranch_vccz out
  s_cmp_lt_i32 s0, 8
  s_cbranch_scc1 outer
out:
  s_endpgm
.size f, .-f
