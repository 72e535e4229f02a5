extern "C" __attribute__((device)) int again(int);
extern "C" __attribute__((device)) int hidden(int);
extern "C" __attribute__((global)) void k_again(int *to, int n) { to[__builtin_amdgcn_workitem_id_x()] = again(n); }
extern "C" __attribute__((global)) void k_hidden(int *to, int n) { to[__builtin_amdgcn_workitem_id_x()] = hidden(n); }
