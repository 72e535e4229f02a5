// gfx90a gfx1201
// An absolute address in code may be stored anywhere, so its function is open.
.type a,@function
a:
  s_setpc_b64 s[30:31]
.size a, .-a
.type user,@function
user:
  s_mov_b32 s4, a@abs32@lo
  s_mov_b32 s5, a@abs32@hi
  v_mov_b32 v0, s4
  s_endpgm
.size user, .-user
