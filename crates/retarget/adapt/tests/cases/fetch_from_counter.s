// A program counter that is only used for prefetches: the distances follow their targets if
// the instructions are consecutive, sums and lanes are unchanged, and nothing is refused.
s_get_pc_i64 s[24:25]
s_mov_b32 s26, 31
s_prefetch_inst s[24:25], 0x40, s26, 0
s_prefetch_inst s[24:25], 0x10000, s26, 0
v_writelane_b32 v9, s24, 1
v_writelane_b32 v9, s25, 2
s_add_co_u32 s24, s24, s3
s_add_co_ci_u32 s25, s25, 0
s_prefetch_inst s[24:25], 0x20, null, 31
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
v_add_f32 v2, v2, v3
v_readlane_b32 s30, v9, 1
v_readlane_b32 s31, v9, 2
s_prefetch_inst s[30:31], 0x50, null, 31
global_store_b32 v[4:5], v2, off
s_get_pc_i64 s[6:7]
s_add_co_u32 s6, s6, 0x1234000
s_add_co_ci_u32 s7, s7, 0
s_prefetch_inst s[6:7], 0, null, 31
s_endpgm
