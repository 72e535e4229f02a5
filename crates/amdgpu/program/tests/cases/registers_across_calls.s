// gfx90a gfx1201 link
// A register that a callee certainly does not write may hold an address. One
// that it writes may not, except callee-saved registers that it restores.
.type leaf,@function
leaf:
  v_mov_b32 v0, s18
  s_setpc_b64 s[30:31]
.size leaf, .-leaf
.type writes,@function
writes:
  s_mov_b32 s17, 0
  s_setpc_b64 s[30:31]
.size writes, .-writes
.type caller,@function
caller:
  s_mov_b64 s[20:21], s[30:31]
  s_getpc_b64 s[16:17]
  s_add_u32 s16, s16, leaf@rel32@lo+4
  s_addc_u32 s17, s17, leaf@rel32@hi+12
  s_swappc_b64 s[30:31], s[16:17]
  s_swappc_b64 s[30:31], s[16:17]
  s_getpc_b64 s[24:25]
  s_add_u32 s24, s24, writes@rel32@lo+4
  s_addc_u32 s25, s25, writes@rel32@hi+12
  s_swappc_b64 s[30:31], s[24:25]
  s_swappc_b64 s[30:31], s[16:17]
  s_endpgm
.size caller, .-caller
.type saver,@function
saver:
  s_mov_b64 s[20:21], s[30:31]
  s_getpc_b64 s[16:17]
  s_add_u32 s16, s16, leaf@rel32@lo+4
  s_addc_u32 s17, s17, leaf@rel32@hi+12
  s_swappc_b64 s[30:31], s[16:17]
  s_setpc_b64 s[20:21]
.size saver, .-saver
