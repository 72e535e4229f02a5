// gfx90a gfx1201 link link-relocs
// A jump to a loaded address has as targets all places in its function that words of the file name, also in a
// loop, but not where another distance is added to the counter. No kernel: loaded addresses may be in others, too.
.type jumps,@function
jumps:
  s_getpc_b64 s[6:7]
  s_add_u32 s6, s6, table@rel32@lo+4
  s_addc_u32 s7, s7, table@rel32@hi+12
.Lagain:
  s_load_dwordx2 s[4:5], s[6:7], s8
  s_nop 0
  s_setpc_b64 s[4:5]
.Lone:
  s_nop 1
  s_branch .Lagain
.Ltwo:
  s_cbranch_scc1 .Lone
.Lthree:
  s_endpgm
.size jumps, .-jumps
// A value added to a loaded address is unknown. An address loaded elsewhere belongs to another function.
.type computes,@function
computes:
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_nop 0
  s_add_u32 s4, s4, s8
  s_addc_u32 s5, s5, 0
  s_setpc_b64 s[4:5]
.Lfour:
  s_endpgm
.size computes, .-computes
// Words name the function, but no place inside it.
.type tail,@function
tail:
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_nop 0
  s_setpc_b64 s[4:5]
.size tail, .-tail
// A word names the middle of an instruction.
.type middle,@function
middle:
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_nop 0
  s_setpc_b64 s[4:5]
.Lmiddle:
  s_mov_b32 s4, 0x12345678
  s_endpgm
.size middle, .-middle
.section .data.rel.ro,"aw"
table:
.quad .Lone, .Ltwo, .Lthree, .Lone, .Lfour, tail, .Lmiddle, .Lmiddle + 4
