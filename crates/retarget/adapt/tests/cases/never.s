// No path reaches the pair of loads, and all paths are known: it is unchanged.
s_branch .Lend
ds_load_2addr_b32 v[2:3], v1 offset1:9
.Lend:
s_endpgm
