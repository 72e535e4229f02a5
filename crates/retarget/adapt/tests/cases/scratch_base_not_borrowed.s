// s0 to s101 are read later. s102 and s103 must not be written: a read of the scratch base is near.
// sgprs: 106
v_cvt_f32_fp8_e64 v5, v6 byte_sel:1 clamp
s_mov_b32 vcc_lo, src_flat_scratch_base_lo
.set n, 0
.rept 102
s_add_co_u32 vcc_lo, vcc_lo, s[n]
.set n, n+1
.endr
v_mov_b32 v7, vcc_lo
global_store_b32 v[0:1], v5, off
global_store_b32 v[0:1], v7, off
s_endpgm
