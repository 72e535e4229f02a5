// Two matrix instructions borrow the same registers, and EXEC changes in between. The second reads all their lanes,
// also those that were off when they were written: these hold no value, though the first seems to overwrite them.
s_load_b32 s5, s[0:1], 0x0
v_wmma_f16_16x16x128_fp8_fp8 v[2:5], v[10:25], v[26:41], v[2:5]
s_wait_kmcnt 0x0
s_mov_b32 s4, exec_lo
s_and_b32 exec_lo, exec_lo, s5
v_mov_b32 v6, 0
s_mov_b32 exec_lo, s4
v_wmma_f16_16x16x128_fp8_fp8 v[2:5], v[10:25], v[26:41], v[2:5]
global_store_b128 v[8:9], v[2:5], off
global_store_b32 v[8:9], v6, off offset:16
s_endpgm
