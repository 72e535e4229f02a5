// The nearest reader is at the start of the next iteration.
loop:
v_add_f32 v42, v0, v43
v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[8:15], v[16:23], v[0:7]
s_sub_co_u32 s0, s0, 1
s_cbranch_scc1 loop
v_mov_b32 v41, v40
v_add_f32 v42, v0, v43
s_endpgm
