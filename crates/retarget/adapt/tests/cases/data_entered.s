// A symbol marks this as data, but execution enters it after its first
// word: it is code, and its branch still points to the end of the program.
s_branch inside
.type named,@object
named:
.long 0
inside:
s_cbranch_scc0 .Lend
.size named,.-named
.type behind,@notype
behind:
ds_load_2addr_b32 v[2:3], v1 offset1:9
s_wait_dscnt 0x0
v_add_f32 v2, v2, v3
global_store_b32 v[4:5], v2, off
.Lend:
s_endpgm
