// One unit of a program of two: both have static kernels of the same names and shapes.
#include <hip/hip_runtime.h>
namespace {
__global__ void first(int *p) {
  if (threadIdx.x & 1) p[0] = LETTER;
}
}
static __global__ void init(int *p) {
  if (threadIdx.x & 1) p[1] = LETTER;
}
#define JOINED(a, b) a##b
#define NAME(a, b) JOINED(a, b)
void NAME(launch_, LETTER)(int *p, int firsts, int inits) {
  for (int i = 0; i < firsts; ++i) first<<<1, 64>>>(p);
  for (int i = 0; i < inits; ++i) init<<<1, 64>>>(p);
}
