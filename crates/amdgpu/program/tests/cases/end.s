// gfx90a gfx1030 gfx1100 gfx1250
// Ends of waves, traps that return, traps that end the wave, padding after the end.
.type f,@function
f:
  s_trap 3
  s_setprio 1
  s_cbranch_execz out
  s_endpgm
out:
  s_endpgm_saved
.size f, .-f
.type g,@function
g:
  s_trap 2
.size g, .-g
.type h,@function
h:
  s_endpgm
.size h, .-h
.fill 4, 4, 0xbf9f0000
