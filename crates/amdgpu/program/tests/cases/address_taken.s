// gfx90a gfx1201 link
// Functions whose address is in a table or escapes elsewhere can be called from anywhere.
.type a,@function
a:
  s_setpc_b64 s[30:31]
.size a, .-a
.type b,@function
b:
  s_setpc_b64 s[30:31]
.size b, .-b
.type c,@function
c:
  s_setpc_b64 s[30:31]
.size c, .-c
.type user,@function
user:
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, b@rel32@lo+4
  s_addc_u32 s5, s5, b@rel32@hi+12
  v_mov_b32 v0, s4
  v_mov_b32 v1, s5
  s_getpc_b64 s[6:7]
  s_add_u32 s6, s6, c@rel32@lo+4
  s_addc_u32 s7, s7, c@rel32@hi+12
  s_swappc_b64 s[30:31], s[6:7]
  s_endpgm
.size user, .-user
.data
.quad a
