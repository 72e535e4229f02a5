// The address was in scratch memory in between: other lanes may load other addresses.
s_load_b64 s[4:5], s[0:1], s8
s_wait_kmcnt 0x0
v_mov_b32 v2, s4
v_mov_b32 v3, s5
scratch_store_b64 off, v[2:3], off
s_wait_storecnt 0x0
scratch_load_b64 v[2:3], off, off
s_wait_loadcnt 0x0
v_readfirstlane_b32 s4, v2
v_readfirstlane_b32 s5, v3
s_set_pc_i64 s[4:5]
.Lone:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_endpgm
.section .data.rel.ro,"aw"
.quad .Lone
.text
