// gfx1250 link
// Program counters that are only used for prefetches, by every possible data flow, and those that are not.
.set msb1, 0x0041
.type straight,@function
straight:
  s_get_pc_i64 s[24:25]
  s_mov_b32 s26, 31
  s_prefetch_inst s[24:25], 0x100, s26, 0
  s_prefetch_data s[24:25], 0x200, null, 3
  s_endpgm
.size straight, .-straight
.type sums,@function
sums:
  s_get_pc_i64 s[4:5]
  s_add_co_u32 s4, s4, s8
  s_add_co_ci_u32 s5, s5, 0
  s_mov_b64 s[6:7], s[4:5]
  s_add_nc_u64 s[6:7], s[6:7], 0x1234
again:
  s_prefetch_inst s[6:7], 0, null, 31
  s_add_nc_u64 s[6:7], s[6:7], 64
  s_sub_co_i32 s9, s9, 1
  s_cmp_lg_u32 s9, 0
  s_cbranch_scc1 again
  s_endpgm
.size sums, .-sums
.type lanes,@function
lanes:
  s_set_vgpr_msb msb1
  s_get_pc_i64 s[36:37]
  s_set_vgpr_msb msb1
  v_writelane_b32 v248 /*v504*/, s36, 11
  v_writelane_b32 v248 /*v504*/, s37, 12
  v_readlane_b32 s96, v248 /*v504*/, 0
  s_mov_b64 s[36:37], 0
  s_set_vgpr_msb 0
  v_add_nc_u32 v1, v248, v2
  s_set_vgpr_msb msb1
  v_readlane_b32 s40, v248 /*v504*/, 11
  v_readlane_b32 s41, v248 /*v504*/, 12
  s_prefetch_inst s[40:41], 0, null, 31
  v_mov_b32 v1, s96
  s_endpgm
.size lanes, .-lanes
.type unused,@function
unused:
  s_get_pc_i64 s[24:25]
  s_mov_b32 s26, 31
  s_endpgm
.size unused, .-unused
.type into_vector,@function
into_vector:
  s_get_pc_i64 s[4:5]
  s_prefetch_inst s[4:5], 0, null, 31
  v_mov_b32 v0, s4
  s_endpgm
.size into_vector, .-into_vector
.type into_condition,@function
into_condition:
  s_get_pc_i64 s[4:5]
  s_prefetch_inst s[4:5], 0, null, 31
  s_add_co_u32 s4, s4, 64
  s_cbranch_scc1 otherwise
  s_nop 0
otherwise:
  s_endpgm
.size into_condition, .-into_condition
.type into_memory,@function
into_memory:
  s_get_pc_i64 s[4:5]
  s_prefetch_inst s[4:5], 0, null, 31
  s_load_b32 s6, s[4:5], 0x10
  s_endpgm
.size into_memory, .-into_memory
.type whole_lanes,@function
whole_lanes:
  s_get_pc_i64 s[4:5]
  s_prefetch_inst s[4:5], 0, null, 31
  v_writelane_b32 v7, s4, 1
  v_add_nc_u32 v1, v7, v2
  s_endpgm
.size whole_lanes, .-whole_lanes
.type returns,@function
returns:
  s_get_pc_i64 s[4:5]
  s_prefetch_inst s[4:5], 0, null, 31
  s_set_pc_i64 s[30:31]
.size returns, .-returns
.type one_way,@function
one_way:
  s_get_pc_i64 s[4:5]
  s_cmp_eq_u32 s9, 0
  s_cbranch_scc1 jump
  s_prefetch_inst s[4:5], 0, null, 31
  s_endpgm
jump:
  s_add_nc_u64 s[4:5], s[4:5], 64
  s_set_pc_i64 s[4:5]
.size one_way, .-one_way
