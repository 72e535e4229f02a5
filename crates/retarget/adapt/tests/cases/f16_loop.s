// Matrix instructions read all lanes of registers that conversions wrote in active lanes, in every loop iteration.
.Lloop:
v_wmma_f16_16x16x128_fp8_bf8 v[0:3], v[8:23], v[24:39], v[0:3]
v_wmma_f16_16x16x128_fp8_bf8 v[4:7], v[8:23], v[24:39], v[4:7]
s_sub_co_u32 s0, s0, 1
s_cbranch_scc1 .Lloop
global_store_b128 v[40:41], v[0:3], off
global_store_b128 v[40:41], v[4:7], off
s_endpgm
