// gfx90a gfx1100 gfx1201 link
// A jump to a loaded address bounds its own function and no other, and so do undecodable bytes.
.type jumps,@function
jumps:
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_setpc_b64 s[4:5]
.size jumps, .-jumps
.type good,@function
good:
  s_setpc_b64 s[30:31]
.size good, .-good
.type broken,@function
broken:
  s_cbranch_scc0 good
  .long 0xbfbf0000 ^ 0xffffffff, 0xffffffff
.size broken, .-broken
.type outside,@function
outside:
  s_branch 0x7000
.size outside, .-outside
.type middle,@function
middle:
  s_cbranch_scc1 1
  s_mov_b32 s0, 0x12345678
  s_endpgm
.size middle, .-middle
.type endless,@function
endless:
  s_nop 0
.size endless, .-endless
