// Symbols behind grown code, some without a size or of no kind, keep naming what they named (L3357).
k:
	ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9
inner:
	s_wait_dscnt 0x0
	s_branch last
middle:
	ds_load_2addr_b32 v[2:3], v0 offset0:7 offset1:9
last:
	global_store_b64 v1, v[2:3], s[2:3]
	s_cbranch_scc1 middle
	s_endpgm
