// A kernel and the host function that starts it; returns HIP's error text.
#include "tiny.h"

__global__ void store(int *out) { *out = 1; }

const char *start() {
  store<<<1, 1>>>(nullptr);
  return hipGetErrorString(hipGetLastError());
}
