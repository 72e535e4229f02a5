// The kernels in the data files.
#include <hip/hip_runtime.h>
extern "C" __global__ void helper(int *p) { *p += 5; }
extern "C" __global__ void tuned(int *p) { *p += 7; }
extern "C" __global__ void fallback(int *p) { *p += 11; }
