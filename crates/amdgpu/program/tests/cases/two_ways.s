// gfx90a gfx1201
// If two paths provide different addresses, the jump target is unknown. The same address from both is known.
.type f,@function
f:
  s_getpc_b64 s[4:5]
p1:
  s_cbranch_scc1 second
  s_add_u32 s4, s4, a-p1
  s_addc_u32 s5, s5, 0
  s_branch go
second:
  s_add_u32 s4, s4, b-p1
  s_addc_u32 s5, s5, 0
go:
  s_setpc_b64 s[4:5]
a:
  s_endpgm
b:
  s_endpgm
.size f, .-f
.type g,@function
g:
  s_getpc_b64 s[4:5]
p2:
  s_cbranch_scc1 third
  s_add_u32 s4, s4, c-p2
  s_addc_u32 s5, s5, 0
  s_branch go2
third:
  s_add_u32 s4, s4, c-p2
  s_addc_u32 s5, s5, 0
go2:
  s_setpc_b64 s[4:5]
c:
  s_endpgm
.size g, .-g
