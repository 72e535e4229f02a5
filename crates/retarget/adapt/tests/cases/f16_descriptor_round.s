// A conversion rounds the sum to 16 bits and depends on MODE. The matrix instruction does not.
// descriptor: .amdhsa_float_round_mode_16_64 3
v_wmma_f16_16x16x128_fp8_fp8 v[2:5], v[10:25], v[26:41], v[2:5]
global_store_b128 v[8:9], v[2:5], off
s_endpgm
