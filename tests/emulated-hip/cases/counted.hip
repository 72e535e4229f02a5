// A code object of its own: NUMBER makes the shapes of the functions differ.
#include <hip/hip_runtime.h>
#ifndef NUMBER
#define NUMBER 0
#endif
__device__ __attribute__((noinline)) int more(int a) {
#if NUMBER > 0
  if (a > NUMBER) return a * 3;
#endif
#if NUMBER > 1
  for (int i = 0; i < a; ++i) if (i == NUMBER) return i;
#endif
  return a;
}
extern "C" __global__ void count(int *p) {
  if (threadIdx.x & 1) p[threadIdx.x] = more((int)threadIdx.x);
}
__global__ void never(int *p) { p[0] = NUMBER; }
