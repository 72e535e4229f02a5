	s_setreg_b32 hwreg(HW_REG_MODE), s4 //mir: S_SETREG_B32 $sgpr4, -2047, implicit-def $mode, implicit $mode
	s_setreg_b32 hwreg(HW_REG_MODE), s5 //mir: S_SETREG_B32 $sgpr5, -2047, implicit-def $mode, implicit $mode
