// No way leads to the pair of loads, and all ways are known: it stays.
s_branch .Lend
ds_load_2addr_b32 v[2:3], v1 offset1:9
.Lend:
s_endpgm
