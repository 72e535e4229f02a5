// A refusal names the line of the source.
.file 1 "/src" "gemm.hip"
.loc 1 42 7
v_mov_b32 v0, 0
.loc 1 43 9
s_get_barrier_state s4, -1
s_endpgm
