// vgprs: 256
// workgroup: 1024
// Another link register than that of LLVM's functions: the callee may take its arguments anywhere.
v_mov_b32 v40, v0
v_mov_b32 v255, v0
s_load_b64 s[14:15], s[0:1], 0x0
s_wait_kmcnt 0x0
v_cvt_f32_fp8 v4, v0 clamp
s_swap_pc_i64 s[36:37], s[14:15]
v_mov_b32 v1, v40
s_endpgm
