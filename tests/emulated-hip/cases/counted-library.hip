// A library with counters for programs without them: launches its kernel and waits for it.
#include <hip/hip_runtime.h>

__global__ void count(int *p) {
  if (threadIdx.x & 1) p[0] = 1;
}

extern "C" int work(int launches) {
  int *p;
  if (hipMalloc(&p, 4096) != hipSuccess) return 1;
  for (int i = 0; i < launches; ++i) count<<<1, 64>>>(p);
  return hipDeviceSynchronize() != hipSuccess;
}
