#define KERNEL(f) \
  extern "C" __attribute__((device)) int f(int); \
  extern "C" __attribute__((global)) void k_##f(int *to, int n) { to[__builtin_amdgcn_workitem_id_x()] = f(n); }
KERNEL(again)
KERNEL(hidden)
KERNEL(pointed)
