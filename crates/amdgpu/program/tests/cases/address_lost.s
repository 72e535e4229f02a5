// gfx90a gfx1201 link
// Functions whose address is in a register where it is no longer tracked, and that register is read later: an
// unknown call may reach them. If the register is not read, the address is lost for good, and callers stay known.
.macro address low, high, name
  s_getpc_b64 s[\low:\high]
  s_add_u32 s\low, s\low, \name@rel32@lo+4
  s_addc_u32 s\high, s\high, \name@rel32@hi+12
.endm
.macro function name
.type \name,@function
\name:
  s_setpc_b64 s[30:31]
.size \name, .-\name
.endm
function first
function second
function stale
function passed
function given
function written_over
// Two paths choose the callee.
.type chooses,@function
chooses:
  s_cbranch_scc0 .Lsecond
  address 4, 5, first
  s_branch .Lchosen
.Lsecond:
  address 4, 5, second
.Lchosen:
  s_swappc_b64 s[30:31], s[4:5]
  s_endpgm
.size chooses, .-chooses
// All are called from here as well. Their addresses are merged at the start of the loop, where nothing reads them.
.type calls,@function
calls:
  address 6, 7, first
  s_swappc_b64 s[30:31], s[6:7]
  address 6, 7, second
  s_swappc_b64 s[30:31], s[6:7]
  address 6, 7, stale
  s_swappc_b64 s[30:31], s[6:7]
  address 6, 7, passed
  s_swappc_b64 s[30:31], s[6:7]
  address 6, 7, given
  s_swappc_b64 s[30:31], s[6:7]
  address 6, 7, written_over
  s_swappc_b64 s[30:31], s[6:7]
  s_cbranch_scc1 calls
  s_endpgm
.size calls, .-calls
// The callee calls the address in a register that its caller filled.
.type is_passed,@function
is_passed:
  s_mov_b64 s[34:35], s[30:31]
  s_swappc_b64 s[30:31], s[8:9]
  s_setpc_b64 s[34:35]
.size is_passed, .-is_passed
.type passes,@function
passes:
  address 8, 9, passed
  address 6, 7, is_passed
  s_swappc_b64 s[30:31], s[6:7]
  s_endpgm
.size passes, .-passes
// The caller calls the address that its callee left in a register.
.type gives,@function
gives:
  address 10, 11, given
  s_setpc_b64 s[30:31]
.size gives, .-gives
.type is_given,@function
is_given:
  address 6, 7, gives
  s_swappc_b64 s[30:31], s[6:7]
  s_swappc_b64 s[30:31], s[10:11]
  s_endpgm
.size is_given, .-is_given
// A callee that may overwrite the register.
.type overwrites,@function
overwrites:
  s_cbranch_scc0 .Lkeeps
  s_mov_b64 s[12:13], 0
.Lkeeps:
  s_setpc_b64 s[30:31]
.size overwrites, .-overwrites
.type keeps,@function
keeps:
  address 12, 13, written_over
  address 6, 7, overwrites
  s_swappc_b64 s[30:31], s[6:7]
  s_swappc_b64 s[30:31], s[12:13]
  s_endpgm
.size keeps, .-keeps
