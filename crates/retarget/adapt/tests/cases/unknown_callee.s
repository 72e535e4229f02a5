// Before a call of an unknown function, scalar registers are free that hold no argument and are dead after it:
// s[12:13] may be arguments, s16 to s23 and s[36:37] are live after the call, s[24:25] are not.
s_mov_b64 s[16:17], s[0:1]
s_mov_b64 s[18:19], s[0:1]
s_mov_b64 s[20:21], s[0:1]
s_mov_b64 s[22:23], s[0:1]
s_mov_b64 s[36:37], s[0:1]
s_load_b64 s[14:15], s[0:1], 0x0
v_add_nc_u64 v[2:3], src_flat_scratch_base_lo, v[2:3]
s_wait_kmcnt 0x0
s_swap_pc_i64 s[30:31], s[14:15]
v_mov_b32 v4, s16
v_mov_b32 v5, s18
v_mov_b32 v6, s20
v_mov_b32 v7, s22
global_store_b128 v[2:3], v[4:7], off
v_mov_b32 v4, s36
global_store_b32 v[2:3], v4, off offset:16
s_endpgm
