// live: s4, s12, s20
// free: s[40:41]
tensor_load_to_lds s[0:3], s[4:11]
tensor_load_to_lds s[0:3], s[12:19], s[24:27], s[28:31]
// Proven to be clear.
s_and_b32 s20, s20, 0xffff0000
tensor_load_to_lds s[0:3], s[20:27]
// Stores have no mask.
tensor_store_from_lds s[0:3], s[4:11]
s_endpgm
