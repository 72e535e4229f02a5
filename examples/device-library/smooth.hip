#include "stencil.h"
#include <cstdio>

__global__ void smooth(float *out, const float *in, int distance) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = stencil(in + i, distance, 0.25f);
}

int main() {
  int count = 0;
  hipError_t status = hipGetDeviceCount(&count);
  if (status != hipSuccess)
    return std::printf("smooth: %s\n", hipGetErrorString(status)), 1;
  float *data = nullptr;
  if (hipMalloc(&data, 1 << 20) != hipSuccess || hipMemset(data, 0, 1 << 20) != hipSuccess)
    return 1;
  smooth<<<16, 64>>>(data, data + (1 << 16), 4);
  return hipDeviceSynchronize() != hipSuccess;
}
