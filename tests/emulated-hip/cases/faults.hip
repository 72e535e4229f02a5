// Kernels that no GPU executes to their end; HIP's error is printed.
#include <cstdio>
#include <cstring>
#include <hip/hip_runtime.h>

__global__ void store(int *to, long at) { to[at + threadIdx.x] = 1; }
__global__ void forever(volatile int *flag) { while (!*flag) {} }

int main(int, char **words) {
  int *data;
  if (hipMalloc(&data, 4096) || hipMemset(data, 0, 4096)) return 10;
  if (!std::strcmp(words[1], "beyond")) store<<<1, 64>>>(data, 1 << 20);
  if (!std::strcmp(words[1], "null")) store<<<1, 64>>>(nullptr, 0);
  if (!std::strcmp(words[1], "host")) store<<<1, 64>>>((int *)words, 0);
  if (!std::strcmp(words[1], "forever")) forever<<<1, 32>>>(data);
  if (!std::strcmp(words[1], "memory")) {
    void *all = nullptr;
    hipError_t status = hipMalloc(&all, 1ull << 44);
    std::printf("status %d: %s\n", status, hipGetErrorString(status));
    if (hipMalloc(&all, 1 << 20)) return 11; // The GPU is not broken.
    return status == hipErrorOutOfMemory ? 0 : 12;
  }
  hipError_t status = hipDeviceSynchronize();
  std::printf("status %d: %s\n", status, hipGetErrorString(status));
  store<<<1, 64>>>(data, 0);
  std::printf("afterwards %d\n", hipDeviceSynchronize() != hipSuccess);
  return status == hipSuccess ? 0 : 3;
}
