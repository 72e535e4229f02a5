	s_setreg_b32 hwreg(HW_REG_MODE), s4 //mir: S_SETREG_B32 $sgpr4, -2047, implicit-def $mode, implicit $mode
	s_getreg_b32 s5, hwreg(HW_REG_MODE) //mir: $sgpr5 = S_GETREG_B32 63489, implicit $mode
