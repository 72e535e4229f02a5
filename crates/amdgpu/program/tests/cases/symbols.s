// gfx90a gfx1250 link
// Sizes that are wrong, names inside functions, aliases, code without
// a name that is referred to, and code that is not referred to.
.type long,@function
long:
  s_nop 0
.type inner,@function
inner:
inside:
  s_endpgm
.size inner, .-inner
.size long, .-long
.set alias, long
.type short,@function
short:
  s_nop 0
  s_nop 1
  s_endpgm
.size short, 4
  s_nop 2
  s_endpgm
.type caller,@function
caller:
  s_cbranch_scc0 nameless
  s_branch inside
.size caller, .-caller
  s_nop 0
nameless:
  s_nop 4
  s_endpgm
  s_nop 5
  s_endpgm
