// gfx1250 link
// A literal of 32 bits in a sum of 64: whether it has a sign matters from its highest bit on.
.type f,@function
f:
  s_get_pc_i64 s[4:5]
.Lbase:
  s_add_nc_u64 s[4:5], s[4:5], 0x48
  s_set_pc_i64 s[4:5]
  .fill 15, 4, 0xbf800000
.Lahead:
  s_get_pc_i64 s[4:5]
  s_add_nc_u64 s[4:5], 0x70, s[4:5]
  s_set_pc_i64 s[4:5]
  .fill 25, 4, 0xbf800000
  s_endpgm
.size f, .-f
.p2align 8
.type g,@function
g:
  s_nop 0
  s_get_pc_i64 s[4:5]
  // s_add_nc_u64 s[4:5], s[4:5], 0xfffffff8 with 32 bits
  .long 0xa984ff04, 0xfffffff8
  s_set_pc_i64 s[4:5]
.size g, .-g
