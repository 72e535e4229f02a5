// The effect of the words is unknown, and so is the code after them.
v_mov_b32 v0, 0
.long 0xd0310000, 0, 0x7c7c2824
v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7]
s_endpgm
