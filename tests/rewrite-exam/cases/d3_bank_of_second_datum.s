// vgprs: 1024
// The second datum moves to the role of the first, which has another bank (L3577).
k:
	s_set_vgpr_msb 0x24
	ds_store_2addr_b32 v1, v2, v3 offset0:1 offset1:9
	s_set_vgpr_msb 0x2400
	s_endpgm
