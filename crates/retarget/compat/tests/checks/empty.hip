// Kernels without instructions: their entry is the end of the code, and without `whole` there is no code.
#define KERNEL extern "C" __attribute__((global)) void
#ifndef ALONE
KERNEL whole(float *x) { x[0] += 1; }
#endif
KERNEL none(float *) { __builtin_unreachable(); }
KERNEL none_either(float *) { __builtin_unreachable(); }
