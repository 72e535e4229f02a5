// gfx90a gfx1030
// Calls at the ends of functions: of one that ends the wave, of one that passes on to it, of one that returns, of two that
// call each other and nothing else, of unknown addresses where a symbol states the end of the function and where none does.
.type ends,@function
ends:
  s_cbranch_scc0 last
  s_trap 2
last:
  s_endpgm
.size ends, .-ends
.type passes_on,@function
passes_on:
  s_call_b64 s[30:31], ends
.size passes_on, .-passes_on
.type calls_it,@function
calls_it:
  s_call_b64 s[30:31], passes_on
.size calls_it, .-calls_it
.type returns,@function
returns:
  s_cbranch_scc0 ends
  s_setpc_b64 s[30:31]
.size returns, .-returns
.type runs_on,@function
runs_on:
  s_call_b64 s[30:31], returns
.size runs_on, .-runs_on
.type behind,@function
behind:
  s_endpgm
.size behind, .-behind
.type one,@function
one:
  s_call_b64 s[30:31], other
.size one, .-one
.type other,@function
other:
  s_call_b64 s[30:31], one
.size other, .-other
.fill 4, 4, 0xbf9f0000
.type outside,@function
outside:
  s_swappc_b64 s[30:31], s[4:5]
.size outside, .-outside
.type without_size,@function
without_size:
  s_swappc_b64 s[30:31], s[4:5]
.type after_it,@function
after_it:
  s_endpgm
.size after_it, .-after_it
