// relocatable: refused
// In a clause of accesses to LDS, which does not hold the accesses to scratch memory, and under a hint about delays.
.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx1250"
.amdhsa_code_object_version 5
.text
.globl k
.p2align 8
.type k,@function
k:
s_clause 0x2
ds_load_b32 v250, v1 offset:4
ds_store_2addr_stride64_b64 v1, v[2:3], v[4:5] offset0:129 offset1:200
ds_load_b32 v251, v1 offset:8
s_wait_dscnt 0x0
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
.amdhsa_private_segment_fixed_size 16
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
    .private_segment_fixed_size: 16
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
