// On the source, the number of the high half means the whole base in a 64-bit operand. On the target only that of
// the low half does, and only in scalar instructions. Literals of that value, and reads of 32 bits, are unchanged.
v_mov_b32 v0, 0
s_mov_b64 s[2:3], src_flat_scratch_base_hi
s_add_nc_u64 s[4:5], s[2:3], src_flat_scratch_base_hi
s_add_nc_u64 s[4:5], src_flat_scratch_base_hi, src_flat_scratch_base_lo
v_add_nc_u64 v[2:3], src_flat_scratch_base_hi, v[4:5]
v_add_f64 v[2:3], src_flat_scratch_base_lo, src_flat_scratch_base_hi
v_mul_u64 v[10:11], 0xe7, v[0:1]
s_mov_b32 s6, src_flat_scratch_base_hi
v_mov_b32 v1, src_flat_scratch_base_hi
s_endpgm
