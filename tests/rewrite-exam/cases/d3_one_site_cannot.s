// workgroup: 1024
// vgprs: 20
// sgprs: 106
// One place is refused, so nothing is written although the other one could be changed (the status of the other rewriter hid that).
k:
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
	s_barrier_signal_isfirst m0
	s_get_barrier_state s4, -1
	s_wait_dscnt 0x0
	global_store_b64 v1, v[2:3], s[2:3]
	s_endpgm
