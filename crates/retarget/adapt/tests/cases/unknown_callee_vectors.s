// vgprs: 256
// workgroup: 1024
// Before a call of an unknown function with LLVM's link register, vector registers are free that hold no argument and
// are dead after it: arguments are in v0 to v31, v40 is live after the call.
v_mov_b32 v40, v0
v_mov_b32 v255, v0
s_load_b64 s[14:15], s[0:1], 0x0
s_wait_kmcnt 0x0
v_cvt_f32_fp8 v4, v0 clamp
s_swap_pc_i64 s[30:31], s[14:15]
v_mov_b32 v1, v40
s_endpgm
