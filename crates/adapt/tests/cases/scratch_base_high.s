// No row of the tables has that source; what it does on either stepping nobody says.
v_mov_b32 v0, 0
s_mov_b64 s[2:3], src_flat_scratch_base_hi
s_endpgm
