// After a call of an unknown function no load is outstanding, as LLVM's functions wait for theirs
// before they return. The kernel's own load after that call is outstanding, and writes s[26:27].
s_load_b64 s[14:15], s[0:1], 0x0
s_wait_kmcnt 0x0
s_swap_pc_i64 s[30:31], s[14:15]
s_load_b64 s[26:27], s[16:17], 0x8
v_add_nc_u64 v[2:3], src_flat_scratch_base_lo, v[2:3]
s_wait_kmcnt 0x0
s_mov_b64 s[14:15], s[26:27]
s_swap_pc_i64 s[30:31], s[14:15]
s_endpgm
