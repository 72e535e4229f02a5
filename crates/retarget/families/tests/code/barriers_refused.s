// LLVM refuses to assemble the first and the last.
.long 0xbe804fc3
s_get_barrier_state s3, -1
.long 0xbf848001
s_endpgm
