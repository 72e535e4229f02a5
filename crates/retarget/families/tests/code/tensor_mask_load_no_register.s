// live: s4
tensor_load_to_lds s[0:3], s[4:11]
s_endpgm
