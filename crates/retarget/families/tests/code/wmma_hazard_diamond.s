// One side has three instructions that count, the other none.
v_swmmac_i32_16x16x128_iu8 v[0:7], v[8:15], v[16:31], v[40:41]
s_cbranch_scc0 short
v_mov_b32 v50, v51
v_mov_b32 v52, v53
v_dual_mov_b32 v54, v55 :: v_dual_mov_b32 v57, v56
short:
v_mov_b32 v40, 0
s_endpgm
