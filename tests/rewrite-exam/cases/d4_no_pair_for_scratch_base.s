// sgprs: 106
// No pair of scalar registers is free for the base of scratch: it goes through a pair of vector registers.
k:
	s_mov_b64 s[0:1], 0
	s_mov_b64 s[2:3], 0
	s_mov_b64 s[4:5], 0
	s_mov_b64 s[6:7], 0
	s_mov_b64 s[8:9], 0
	s_mov_b64 s[10:11], 0
	s_mov_b64 s[12:13], 0
	s_mov_b64 s[14:15], 0
	s_mov_b64 s[16:17], 0
	s_mov_b64 s[18:19], 0
	s_mov_b64 s[20:21], 0
	s_mov_b64 s[22:23], 0
	s_mov_b64 s[24:25], 0
	s_mov_b64 s[26:27], 0
	s_mov_b64 s[28:29], 0
	s_mov_b64 s[30:31], 0
	s_mov_b64 s[32:33], 0
	s_mov_b64 s[34:35], 0
	s_mov_b64 s[36:37], 0
	s_mov_b64 s[38:39], 0
	s_mov_b64 s[40:41], 0
	s_mov_b64 s[42:43], 0
	s_mov_b64 s[44:45], 0
	s_mov_b64 s[46:47], 0
	s_mov_b64 s[48:49], 0
	s_mov_b64 s[50:51], 0
	s_mov_b64 s[52:53], 0
	s_mov_b64 s[54:55], 0
	s_mov_b64 s[56:57], 0
	s_mov_b64 s[58:59], 0
	s_mov_b64 s[60:61], 0
	s_mov_b64 s[62:63], 0
	s_mov_b64 s[64:65], 0
	s_mov_b64 s[66:67], 0
	s_mov_b64 s[68:69], 0
	s_mov_b64 s[70:71], 0
	s_mov_b64 s[72:73], 0
	s_mov_b64 s[74:75], 0
	s_mov_b64 s[76:77], 0
	s_mov_b64 s[78:79], 0
	s_mov_b64 s[80:81], 0
	s_mov_b64 s[82:83], 0
	s_mov_b64 s[84:85], 0
	s_mov_b64 s[86:87], 0
	s_mov_b64 s[88:89], 0
	s_mov_b64 s[90:91], 0
	s_mov_b64 s[92:93], 0
	s_mov_b64 s[94:95], 0
	s_mov_b64 s[96:97], 0
	s_mov_b64 s[98:99], 0
	s_mov_b64 s[100:101], 0
	s_mov_b64 s[102:103], 0
	s_mov_b64 s[104:105], 0
	v_add_nc_u64 v[2:3], src_flat_scratch_base_lo, v[4:5]
	v_add_nc_u32 v6, s0, v6
	v_add_nc_u32 v6, s1, v6
	v_add_nc_u32 v6, s2, v6
	v_add_nc_u32 v6, s3, v6
	v_add_nc_u32 v6, s4, v6
	v_add_nc_u32 v6, s5, v6
	v_add_nc_u32 v6, s6, v6
	v_add_nc_u32 v6, s7, v6
	v_add_nc_u32 v6, s8, v6
	v_add_nc_u32 v6, s9, v6
	v_add_nc_u32 v6, s10, v6
	v_add_nc_u32 v6, s11, v6
	v_add_nc_u32 v6, s12, v6
	v_add_nc_u32 v6, s13, v6
	v_add_nc_u32 v6, s14, v6
	v_add_nc_u32 v6, s15, v6
	v_add_nc_u32 v6, s16, v6
	v_add_nc_u32 v6, s17, v6
	v_add_nc_u32 v6, s18, v6
	v_add_nc_u32 v6, s19, v6
	v_add_nc_u32 v6, s20, v6
	v_add_nc_u32 v6, s21, v6
	v_add_nc_u32 v6, s22, v6
	v_add_nc_u32 v6, s23, v6
	v_add_nc_u32 v6, s24, v6
	v_add_nc_u32 v6, s25, v6
	v_add_nc_u32 v6, s26, v6
	v_add_nc_u32 v6, s27, v6
	v_add_nc_u32 v6, s28, v6
	v_add_nc_u32 v6, s29, v6
	v_add_nc_u32 v6, s30, v6
	v_add_nc_u32 v6, s31, v6
	v_add_nc_u32 v6, s32, v6
	v_add_nc_u32 v6, s33, v6
	v_add_nc_u32 v6, s34, v6
	v_add_nc_u32 v6, s35, v6
	v_add_nc_u32 v6, s36, v6
	v_add_nc_u32 v6, s37, v6
	v_add_nc_u32 v6, s38, v6
	v_add_nc_u32 v6, s39, v6
	v_add_nc_u32 v6, s40, v6
	v_add_nc_u32 v6, s41, v6
	v_add_nc_u32 v6, s42, v6
	v_add_nc_u32 v6, s43, v6
	v_add_nc_u32 v6, s44, v6
	v_add_nc_u32 v6, s45, v6
	v_add_nc_u32 v6, s46, v6
	v_add_nc_u32 v6, s47, v6
	v_add_nc_u32 v6, s48, v6
	v_add_nc_u32 v6, s49, v6
	v_add_nc_u32 v6, s50, v6
	v_add_nc_u32 v6, s51, v6
	v_add_nc_u32 v6, s52, v6
	v_add_nc_u32 v6, s53, v6
	v_add_nc_u32 v6, s54, v6
	v_add_nc_u32 v6, s55, v6
	v_add_nc_u32 v6, s56, v6
	v_add_nc_u32 v6, s57, v6
	v_add_nc_u32 v6, s58, v6
	v_add_nc_u32 v6, s59, v6
	v_add_nc_u32 v6, s60, v6
	v_add_nc_u32 v6, s61, v6
	v_add_nc_u32 v6, s62, v6
	v_add_nc_u32 v6, s63, v6
	v_add_nc_u32 v6, s64, v6
	v_add_nc_u32 v6, s65, v6
	v_add_nc_u32 v6, s66, v6
	v_add_nc_u32 v6, s67, v6
	v_add_nc_u32 v6, s68, v6
	v_add_nc_u32 v6, s69, v6
	v_add_nc_u32 v6, s70, v6
	v_add_nc_u32 v6, s71, v6
	v_add_nc_u32 v6, s72, v6
	v_add_nc_u32 v6, s73, v6
	v_add_nc_u32 v6, s74, v6
	v_add_nc_u32 v6, s75, v6
	v_add_nc_u32 v6, s76, v6
	v_add_nc_u32 v6, s77, v6
	v_add_nc_u32 v6, s78, v6
	v_add_nc_u32 v6, s79, v6
	v_add_nc_u32 v6, s80, v6
	v_add_nc_u32 v6, s81, v6
	v_add_nc_u32 v6, s82, v6
	v_add_nc_u32 v6, s83, v6
	v_add_nc_u32 v6, s84, v6
	v_add_nc_u32 v6, s85, v6
	v_add_nc_u32 v6, s86, v6
	v_add_nc_u32 v6, s87, v6
	v_add_nc_u32 v6, s88, v6
	v_add_nc_u32 v6, s89, v6
	v_add_nc_u32 v6, s90, v6
	v_add_nc_u32 v6, s91, v6
	v_add_nc_u32 v6, s92, v6
	v_add_nc_u32 v6, s93, v6
	v_add_nc_u32 v6, s94, v6
	v_add_nc_u32 v6, s95, v6
	v_add_nc_u32 v6, s96, v6
	v_add_nc_u32 v6, s97, v6
	v_add_nc_u32 v6, s98, v6
	v_add_nc_u32 v6, s99, v6
	v_add_nc_u32 v6, s100, v6
	v_add_nc_u32 v6, s101, v6
	v_add_nc_u32 v6, s102, v6
	v_add_nc_u32 v6, s103, v6
	v_add_nc_u32 v6, s104, v6
	v_add_nc_u32 v6, s105, v6
	global_store_b64 v[8:9], v[2:3], off
	global_store_b32 v[8:9], v6, off
	s_endpgm
