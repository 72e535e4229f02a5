// The kernel calls a function that is not known, and so is the size of that function's stack.
.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx1250"
.amdhsa_code_object_version 5
.text
.globl k
.p2align 8
.type k,@function
k:
v_mov_b32 v6, 1
v_mov_b32 v7, 1
v_mov_b32 v8, 1
v_mov_b32 v9, 1
v_mov_b32 v10, 1
v_mov_b32 v11, 1
v_mov_b32 v12, 1
v_mov_b32 v13, 1
v_mov_b32 v14, 1
v_mov_b32 v15, 1
v_mov_b32 v16, 1
v_mov_b32 v17, 1
v_mov_b32 v18, 1
v_mov_b32 v19, 1
v_mov_b32 v20, 1
v_mov_b32 v21, 1
v_mov_b32 v22, 1
v_mov_b32 v23, 1
v_mov_b32 v24, 1
v_mov_b32 v25, 1
v_mov_b32 v26, 1
v_mov_b32 v27, 1
v_mov_b32 v28, 1
v_mov_b32 v29, 1
v_mov_b32 v30, 1
v_mov_b32 v31, 1
v_mov_b32 v32, 1
v_mov_b32 v33, 1
v_mov_b32 v34, 1
v_mov_b32 v35, 1
v_mov_b32 v36, 1
v_mov_b32 v37, 1
v_mov_b32 v38, 1
v_mov_b32 v39, 1
v_mov_b32 v40, 1
v_mov_b32 v41, 1
v_mov_b32 v42, 1
v_mov_b32 v43, 1
v_mov_b32 v44, 1
v_mov_b32 v45, 1
v_mov_b32 v46, 1
v_mov_b32 v47, 1
v_mov_b32 v48, 1
v_mov_b32 v49, 1
v_mov_b32 v50, 1
v_mov_b32 v51, 1
v_mov_b32 v52, 1
v_mov_b32 v53, 1
v_mov_b32 v54, 1
v_mov_b32 v55, 1
v_mov_b32 v56, 1
v_mov_b32 v57, 1
v_mov_b32 v58, 1
v_mov_b32 v59, 1
v_mov_b32 v60, 1
v_mov_b32 v61, 1
v_mov_b32 v62, 1
v_mov_b32 v63, 1
v_mov_b32 v64, 1
v_mov_b32 v65, 1
v_mov_b32 v66, 1
v_mov_b32 v67, 1
v_mov_b32 v68, 1
v_mov_b32 v69, 1
v_mov_b32 v70, 1
v_mov_b32 v71, 1
v_mov_b32 v72, 1
v_mov_b32 v73, 1
v_mov_b32 v74, 1
v_mov_b32 v75, 1
v_mov_b32 v76, 1
v_mov_b32 v77, 1
v_mov_b32 v78, 1
v_mov_b32 v79, 1
v_mov_b32 v80, 1
v_mov_b32 v81, 1
v_mov_b32 v82, 1
v_mov_b32 v83, 1
v_mov_b32 v84, 1
v_mov_b32 v85, 1
v_mov_b32 v86, 1
v_mov_b32 v87, 1
v_mov_b32 v88, 1
v_mov_b32 v89, 1
v_mov_b32 v90, 1
v_mov_b32 v91, 1
v_mov_b32 v92, 1
v_mov_b32 v93, 1
v_mov_b32 v94, 1
v_mov_b32 v95, 1
v_mov_b32 v96, 1
v_mov_b32 v97, 1
v_mov_b32 v98, 1
v_mov_b32 v99, 1
v_mov_b32 v100, 1
v_mov_b32 v101, 1
v_mov_b32 v102, 1
v_mov_b32 v103, 1
v_mov_b32 v104, 1
v_mov_b32 v105, 1
v_mov_b32 v106, 1
v_mov_b32 v107, 1
v_mov_b32 v108, 1
v_mov_b32 v109, 1
v_mov_b32 v110, 1
v_mov_b32 v111, 1
v_mov_b32 v112, 1
v_mov_b32 v113, 1
v_mov_b32 v114, 1
v_mov_b32 v115, 1
v_mov_b32 v116, 1
v_mov_b32 v117, 1
v_mov_b32 v118, 1
v_mov_b32 v119, 1
v_mov_b32 v120, 1
v_mov_b32 v121, 1
v_mov_b32 v122, 1
v_mov_b32 v123, 1
v_mov_b32 v124, 1
v_mov_b32 v125, 1
v_mov_b32 v126, 1
v_mov_b32 v127, 1
v_mov_b32 v128, 1
v_mov_b32 v129, 1
v_mov_b32 v130, 1
v_mov_b32 v131, 1
v_mov_b32 v132, 1
v_mov_b32 v133, 1
v_mov_b32 v134, 1
v_mov_b32 v135, 1
v_mov_b32 v136, 1
v_mov_b32 v137, 1
v_mov_b32 v138, 1
v_mov_b32 v139, 1
v_mov_b32 v140, 1
v_mov_b32 v141, 1
v_mov_b32 v142, 1
v_mov_b32 v143, 1
v_mov_b32 v144, 1
v_mov_b32 v145, 1
v_mov_b32 v146, 1
v_mov_b32 v147, 1
v_mov_b32 v148, 1
v_mov_b32 v149, 1
v_mov_b32 v150, 1
v_mov_b32 v151, 1
v_mov_b32 v152, 1
v_mov_b32 v153, 1
v_mov_b32 v154, 1
v_mov_b32 v155, 1
v_mov_b32 v156, 1
v_mov_b32 v157, 1
v_mov_b32 v158, 1
v_mov_b32 v159, 1
v_mov_b32 v160, 1
v_mov_b32 v161, 1
v_mov_b32 v162, 1
v_mov_b32 v163, 1
v_mov_b32 v164, 1
v_mov_b32 v165, 1
v_mov_b32 v166, 1
v_mov_b32 v167, 1
v_mov_b32 v168, 1
v_mov_b32 v169, 1
v_mov_b32 v170, 1
v_mov_b32 v171, 1
v_mov_b32 v172, 1
v_mov_b32 v173, 1
v_mov_b32 v174, 1
v_mov_b32 v175, 1
v_mov_b32 v176, 1
v_mov_b32 v177, 1
v_mov_b32 v178, 1
v_mov_b32 v179, 1
v_mov_b32 v180, 1
v_mov_b32 v181, 1
v_mov_b32 v182, 1
v_mov_b32 v183, 1
v_mov_b32 v184, 1
v_mov_b32 v185, 1
v_mov_b32 v186, 1
v_mov_b32 v187, 1
v_mov_b32 v188, 1
v_mov_b32 v189, 1
v_mov_b32 v190, 1
v_mov_b32 v191, 1
v_mov_b32 v192, 1
v_mov_b32 v193, 1
v_mov_b32 v194, 1
v_mov_b32 v195, 1
v_mov_b32 v196, 1
v_mov_b32 v197, 1
v_mov_b32 v198, 1
v_mov_b32 v199, 1
v_mov_b32 v200, 1
v_mov_b32 v201, 1
v_mov_b32 v202, 1
v_mov_b32 v203, 1
v_mov_b32 v204, 1
v_mov_b32 v205, 1
v_mov_b32 v206, 1
v_mov_b32 v207, 1
v_mov_b32 v208, 1
v_mov_b32 v209, 1
v_mov_b32 v210, 1
v_mov_b32 v211, 1
v_mov_b32 v212, 1
v_mov_b32 v213, 1
v_mov_b32 v214, 1
v_mov_b32 v215, 1
v_mov_b32 v216, 1
v_mov_b32 v217, 1
v_mov_b32 v218, 1
v_mov_b32 v219, 1
v_mov_b32 v220, 1
v_mov_b32 v221, 1
v_mov_b32 v222, 1
v_mov_b32 v223, 1
v_mov_b32 v224, 1
v_mov_b32 v225, 1
v_mov_b32 v226, 1
v_mov_b32 v227, 1
v_mov_b32 v228, 1
v_mov_b32 v229, 1
v_mov_b32 v230, 1
v_mov_b32 v231, 1
v_mov_b32 v232, 1
v_mov_b32 v233, 1
v_mov_b32 v234, 1
v_mov_b32 v235, 1
v_mov_b32 v236, 1
v_mov_b32 v237, 1
v_mov_b32 v238, 1
v_mov_b32 v239, 1
v_mov_b32 v240, 1
v_mov_b32 v241, 1
v_mov_b32 v242, 1
v_mov_b32 v243, 1
v_mov_b32 v244, 1
v_mov_b32 v245, 1
v_mov_b32 v246, 1
v_mov_b32 v247, 1
v_mov_b32 v248, 1
v_mov_b32 v249, 1
v_mov_b32 v250, 1
v_mov_b32 v251, 1
v_mov_b32 v252, 1
v_mov_b32 v253, 1
v_mov_b32 v254, 1
v_mov_b32 v255, 1
s_swap_pc_i64 s[30:31], s[4:5]
v_mov_b32 v1, v40
ds_store_2addr_stride64_b64 v1, v[2:3], v[4:5] offset0:129 offset1:200
v_add_f32 v0, v0, v0
v_add_f32 v0, v0, v1
v_add_f32 v0, v0, v2
v_add_f32 v0, v0, v3
v_add_f32 v0, v0, v4
v_add_f32 v0, v0, v5
v_add_f32 v0, v0, v6
v_add_f32 v0, v0, v7
v_add_f32 v0, v0, v8
v_add_f32 v0, v0, v9
v_add_f32 v0, v0, v10
v_add_f32 v0, v0, v11
v_add_f32 v0, v0, v12
v_add_f32 v0, v0, v13
v_add_f32 v0, v0, v14
v_add_f32 v0, v0, v15
v_add_f32 v0, v0, v16
v_add_f32 v0, v0, v17
v_add_f32 v0, v0, v18
v_add_f32 v0, v0, v19
v_add_f32 v0, v0, v20
v_add_f32 v0, v0, v21
v_add_f32 v0, v0, v22
v_add_f32 v0, v0, v23
v_add_f32 v0, v0, v24
v_add_f32 v0, v0, v25
v_add_f32 v0, v0, v26
v_add_f32 v0, v0, v27
v_add_f32 v0, v0, v28
v_add_f32 v0, v0, v29
v_add_f32 v0, v0, v30
v_add_f32 v0, v0, v31
v_add_f32 v0, v0, v32
v_add_f32 v0, v0, v33
v_add_f32 v0, v0, v34
v_add_f32 v0, v0, v35
v_add_f32 v0, v0, v36
v_add_f32 v0, v0, v37
v_add_f32 v0, v0, v38
v_add_f32 v0, v0, v39
v_add_f32 v0, v0, v40
v_add_f32 v0, v0, v41
v_add_f32 v0, v0, v42
v_add_f32 v0, v0, v43
v_add_f32 v0, v0, v44
v_add_f32 v0, v0, v45
v_add_f32 v0, v0, v46
v_add_f32 v0, v0, v47
v_add_f32 v0, v0, v48
v_add_f32 v0, v0, v49
v_add_f32 v0, v0, v50
v_add_f32 v0, v0, v51
v_add_f32 v0, v0, v52
v_add_f32 v0, v0, v53
v_add_f32 v0, v0, v54
v_add_f32 v0, v0, v55
v_add_f32 v0, v0, v56
v_add_f32 v0, v0, v57
v_add_f32 v0, v0, v58
v_add_f32 v0, v0, v59
v_add_f32 v0, v0, v60
v_add_f32 v0, v0, v61
v_add_f32 v0, v0, v62
v_add_f32 v0, v0, v63
v_add_f32 v0, v0, v64
v_add_f32 v0, v0, v65
v_add_f32 v0, v0, v66
v_add_f32 v0, v0, v67
v_add_f32 v0, v0, v68
v_add_f32 v0, v0, v69
v_add_f32 v0, v0, v70
v_add_f32 v0, v0, v71
v_add_f32 v0, v0, v72
v_add_f32 v0, v0, v73
v_add_f32 v0, v0, v74
v_add_f32 v0, v0, v75
v_add_f32 v0, v0, v76
v_add_f32 v0, v0, v77
v_add_f32 v0, v0, v78
v_add_f32 v0, v0, v79
v_add_f32 v0, v0, v80
v_add_f32 v0, v0, v81
v_add_f32 v0, v0, v82
v_add_f32 v0, v0, v83
v_add_f32 v0, v0, v84
v_add_f32 v0, v0, v85
v_add_f32 v0, v0, v86
v_add_f32 v0, v0, v87
v_add_f32 v0, v0, v88
v_add_f32 v0, v0, v89
v_add_f32 v0, v0, v90
v_add_f32 v0, v0, v91
v_add_f32 v0, v0, v92
v_add_f32 v0, v0, v93
v_add_f32 v0, v0, v94
v_add_f32 v0, v0, v95
v_add_f32 v0, v0, v96
v_add_f32 v0, v0, v97
v_add_f32 v0, v0, v98
v_add_f32 v0, v0, v99
v_add_f32 v0, v0, v100
v_add_f32 v0, v0, v101
v_add_f32 v0, v0, v102
v_add_f32 v0, v0, v103
v_add_f32 v0, v0, v104
v_add_f32 v0, v0, v105
v_add_f32 v0, v0, v106
v_add_f32 v0, v0, v107
v_add_f32 v0, v0, v108
v_add_f32 v0, v0, v109
v_add_f32 v0, v0, v110
v_add_f32 v0, v0, v111
v_add_f32 v0, v0, v112
v_add_f32 v0, v0, v113
v_add_f32 v0, v0, v114
v_add_f32 v0, v0, v115
v_add_f32 v0, v0, v116
v_add_f32 v0, v0, v117
v_add_f32 v0, v0, v118
v_add_f32 v0, v0, v119
v_add_f32 v0, v0, v120
v_add_f32 v0, v0, v121
v_add_f32 v0, v0, v122
v_add_f32 v0, v0, v123
v_add_f32 v0, v0, v124
v_add_f32 v0, v0, v125
v_add_f32 v0, v0, v126
v_add_f32 v0, v0, v127
v_add_f32 v0, v0, v128
v_add_f32 v0, v0, v129
v_add_f32 v0, v0, v130
v_add_f32 v0, v0, v131
v_add_f32 v0, v0, v132
v_add_f32 v0, v0, v133
v_add_f32 v0, v0, v134
v_add_f32 v0, v0, v135
v_add_f32 v0, v0, v136
v_add_f32 v0, v0, v137
v_add_f32 v0, v0, v138
v_add_f32 v0, v0, v139
v_add_f32 v0, v0, v140
v_add_f32 v0, v0, v141
v_add_f32 v0, v0, v142
v_add_f32 v0, v0, v143
v_add_f32 v0, v0, v144
v_add_f32 v0, v0, v145
v_add_f32 v0, v0, v146
v_add_f32 v0, v0, v147
v_add_f32 v0, v0, v148
v_add_f32 v0, v0, v149
v_add_f32 v0, v0, v150
v_add_f32 v0, v0, v151
v_add_f32 v0, v0, v152
v_add_f32 v0, v0, v153
v_add_f32 v0, v0, v154
v_add_f32 v0, v0, v155
v_add_f32 v0, v0, v156
v_add_f32 v0, v0, v157
v_add_f32 v0, v0, v158
v_add_f32 v0, v0, v159
v_add_f32 v0, v0, v160
v_add_f32 v0, v0, v161
v_add_f32 v0, v0, v162
v_add_f32 v0, v0, v163
v_add_f32 v0, v0, v164
v_add_f32 v0, v0, v165
v_add_f32 v0, v0, v166
v_add_f32 v0, v0, v167
v_add_f32 v0, v0, v168
v_add_f32 v0, v0, v169
v_add_f32 v0, v0, v170
v_add_f32 v0, v0, v171
v_add_f32 v0, v0, v172
v_add_f32 v0, v0, v173
v_add_f32 v0, v0, v174
v_add_f32 v0, v0, v175
v_add_f32 v0, v0, v176
v_add_f32 v0, v0, v177
v_add_f32 v0, v0, v178
v_add_f32 v0, v0, v179
v_add_f32 v0, v0, v180
v_add_f32 v0, v0, v181
v_add_f32 v0, v0, v182
v_add_f32 v0, v0, v183
v_add_f32 v0, v0, v184
v_add_f32 v0, v0, v185
v_add_f32 v0, v0, v186
v_add_f32 v0, v0, v187
v_add_f32 v0, v0, v188
v_add_f32 v0, v0, v189
v_add_f32 v0, v0, v190
v_add_f32 v0, v0, v191
v_add_f32 v0, v0, v192
v_add_f32 v0, v0, v193
v_add_f32 v0, v0, v194
v_add_f32 v0, v0, v195
v_add_f32 v0, v0, v196
v_add_f32 v0, v0, v197
v_add_f32 v0, v0, v198
v_add_f32 v0, v0, v199
v_add_f32 v0, v0, v200
v_add_f32 v0, v0, v201
v_add_f32 v0, v0, v202
v_add_f32 v0, v0, v203
v_add_f32 v0, v0, v204
v_add_f32 v0, v0, v205
v_add_f32 v0, v0, v206
v_add_f32 v0, v0, v207
v_add_f32 v0, v0, v208
v_add_f32 v0, v0, v209
v_add_f32 v0, v0, v210
v_add_f32 v0, v0, v211
v_add_f32 v0, v0, v212
v_add_f32 v0, v0, v213
v_add_f32 v0, v0, v214
v_add_f32 v0, v0, v215
v_add_f32 v0, v0, v216
v_add_f32 v0, v0, v217
v_add_f32 v0, v0, v218
v_add_f32 v0, v0, v219
v_add_f32 v0, v0, v220
v_add_f32 v0, v0, v221
v_add_f32 v0, v0, v222
v_add_f32 v0, v0, v223
v_add_f32 v0, v0, v224
v_add_f32 v0, v0, v225
v_add_f32 v0, v0, v226
v_add_f32 v0, v0, v227
v_add_f32 v0, v0, v228
v_add_f32 v0, v0, v229
v_add_f32 v0, v0, v230
v_add_f32 v0, v0, v231
v_add_f32 v0, v0, v232
v_add_f32 v0, v0, v233
v_add_f32 v0, v0, v234
v_add_f32 v0, v0, v235
v_add_f32 v0, v0, v236
v_add_f32 v0, v0, v237
v_add_f32 v0, v0, v238
v_add_f32 v0, v0, v239
v_add_f32 v0, v0, v240
v_add_f32 v0, v0, v241
v_add_f32 v0, v0, v242
v_add_f32 v0, v0, v243
v_add_f32 v0, v0, v244
v_add_f32 v0, v0, v245
v_add_f32 v0, v0, v246
v_add_f32 v0, v0, v247
v_add_f32 v0, v0, v248
v_add_f32 v0, v0, v249
v_add_f32 v0, v0, v250
v_add_f32 v0, v0, v251
v_add_f32 v0, v0, v252
v_add_f32 v0, v0, v253
v_add_f32 v0, v0, v254
v_add_f32 v0, v0, v255
global_store_b32 v[2:3], v0, off
s_endpgm
.Lk_end:
.size k, .Lk_end-k
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_next_free_vgpr 256
.amdhsa_next_free_sgpr 40
.amdhsa_inst_pref_size 1
.amdhsa_private_segment_fixed_size 64
.amdhsa_enable_private_segment 1
.amdhsa_uses_dynamic_stack 0
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 64
    .uses_dynamic_stack: false
    .wavefront_size: 32
    .sgpr_count: 42
    .vgpr_count: 256
    .max_flat_workgroup_size: 1024
amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1250
amdhsa.version:
  - 1
  - 2
...
.end_amdgpu_metadata
