// gfx90a gfx1100 gfx1250 link
// Data between and inside of functions is never taken for code.
.type f,@function
f:
  s_branch over
  .long 0xffffffff, 0x00000000, 0xdeadbeef
over:
  s_endpgm
.size f, .-f
  .long 0xffffffff
.type g,@function
g:
  s_endpgm
.size g, .-g
.fill 7, 4, 0xbf800000
