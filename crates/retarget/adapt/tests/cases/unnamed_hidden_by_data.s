// The word before the function looks like the first half of an instruction:
// a pass from instruction to instruction does not find the pair of loads.
s_load_b64 s[4:5], s[0:1], 0x0
s_wait_kmcnt 0x0
s_swap_pc_i64 s[30:31], s[4:5]
s_endpgm
.text 1
.long 0xcc33000a
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
s_set_pc_i64 s[30:31]
.text 0
