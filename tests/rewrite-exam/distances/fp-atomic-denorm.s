	global_atomic_fcmpswap v[0:1], v[2:3], off //mir: GLOBAL_ATOMIC_FCMPSWAP $vgpr0_vgpr1, $vgpr2_vgpr3, 0, 0, implicit $exec
	s_denorm_mode 0 //mir: S_DENORM_MODE 0, implicit-def $mode, implicit $mode

	flat_atomic_fmin v[0:1], v2 //mir: FLAT_ATOMIC_FMIN $vgpr0_vgpr1, $vgpr2, 0, 0, implicit $exec, implicit $flat_scr
	s_denorm_mode 0 //mir: S_DENORM_MODE 0, implicit-def $mode, implicit $mode

	buffer_atomic_fmax v0, off, s[0:3], 0 //mir: BUFFER_ATOMIC_FMAX_OFFSET $vgpr0, $sgpr0_sgpr1_sgpr2_sgpr3, 0, 0, 0, implicit $exec
	s_denorm_mode 0 //mir: S_DENORM_MODE 0, implicit-def $mode, implicit $mode
