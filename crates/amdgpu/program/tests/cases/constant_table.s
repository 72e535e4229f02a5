// gfx90a gfx1201 link
// A constant table is read; one that can be written is not.
.type a,@function
a:
  s_setpc_b64 s[30:31]
.size a, .-a
.type user,@function
user:
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, constant@rel32@lo+4
  s_addc_u32 s5, s5, constant@rel32@hi+12
  s_load_dwordx4 s[8:11], s[4:5], 0x8
  s_getpc_b64 s[6:7]
  s_add_u32 s6, s6, variable@rel32@lo+4
  s_addc_u32 s7, s7, variable@rel32@hi+12
  s_load_dwordx2 s[12:13], s[6:7], 0x0
  s_waitcnt lgkmcnt(0)
  s_swappc_b64 s[30:31], s[10:11]
  s_swappc_b64 s[30:31], s[12:13]
  s_endpgm
.size user, .-user
.section .data.rel.ro,"aw"
constant:
.quad 0, 0, a
.data
variable:
.quad a
