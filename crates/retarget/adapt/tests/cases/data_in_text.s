// Words that are never executed do no harm.
ds_store_2addr_b32 v1, v2, v3 offset1:9
s_branch .Lend
.long 0xd0310000, 0xffffffff, 0xffffffff
.Lend:
s_endpgm
