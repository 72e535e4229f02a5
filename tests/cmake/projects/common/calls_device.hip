// As kernel.hip, but the kernel needs the device function of device.hip: only a device link of
// both files gives a code object.
#include "tiny.h"

__device__ int twice(int value);

__global__ void store(int *out) { *out = twice(*out); }

const char *start() {
  store<<<1, 1>>>(nullptr);
  return hipGetErrorString(hipGetLastError());
}
