// The descriptor is restored for later readers.
tensor_load_to_lds s[0:3], s[4:11]
s_mov_b32 s20, s4
v_mov_b32 v0, s20
global_store_b32 v[2:3], v0, off
s_endpgm
