s_barrier_signal_isfirst -1
s_barrier_signal_isfirst m0
s_barrier_signal -1
s_barrier_signal -3
s_monitor_sleep 0x7fff
s_sleep 3
s_clause 0x1
s_load_b32 s0, s[2:3], 0x0
s_load_b32 s1, s[2:3], 0x4
s_endpgm
