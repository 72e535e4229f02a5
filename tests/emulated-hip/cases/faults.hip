// Kernels that no GPU executes to their end; HIP's error is printed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <hip/hip_runtime.h>

__global__ void store(int *to, long at) { to[at + threadIdx.x] = 1; }
__global__ void forever(volatile int *flag) { while (!*flag) {} }

__global__ void misaligned(int *to) { atomicAdd((int *)((char *)to + 2), 1); }
// An instruction that the emulator does not know, bytes that are none, and code that runs past its end.
__global__ void unknown(int *) {
#if __HIP_DEVICE_COMPILE__
  asm volatile("s_atc_probe 0, s[0:1], 0x0");
#endif
}
__global__ void illegal(int *) {
#if __HIP_DEVICE_COMPILE__
  asm volatile(".long 0xffffffff");
#endif
}
__global__ void nowhere(int *to) { ((void (*)(int))(to + 1))(threadIdx.x); }

// More frames than a lane has scratch.
__device__ __attribute__((noinline)) int frames(int n, volatile int *above) {
  volatile int own[64];
  own[n & 63] = above[n & 63];
  return n ? frames(n - 1, own) + own[5] : own[7];
}
__global__ void deep(int *to, int n) { *to = frames(n, to); }

int main(int, char **words) {
  int *data;
  if (hipMalloc(&data, 4096) || hipMemset(data, 0, 4096)) return 10;
  if (!std::strcmp(words[1], "beyond")) store<<<1, 64>>>(data, 1 << 20);
  if (!std::strcmp(words[1], "null")) store<<<1, 64>>>(nullptr, 0);
  if (!std::strcmp(words[1], "host")) store<<<1, 64>>>((int *)words, 0);
  if (!std::strcmp(words[1], "freed")) {
    int *gone;
    if (hipMalloc(&gone, 1 << 20) || hipFree(gone)) return 10;
    store<<<1, 64>>>(gone, 0);
  }
  if (!std::strcmp(words[1], "deep")) deep<<<1, 1>>>(data, 1 << 20);
  if (!std::strcmp(words[1], "frames")) {
    // Ten frames of 272 bytes and more: HIP gives them where the program asks for them.
    if (words[2] && hipDeviceSetLimit(hipLimitStackSize, std::atoi(words[2]))) return 10;
    deep<<<1, 1>>>(data, 9);
  }
  if (!std::strcmp(words[1], "misaligned")) misaligned<<<1, 64>>>(data);
  if (!std::strcmp(words[1], "unknown")) unknown<<<1, 64>>>(data);
  if (!std::strcmp(words[1], "illegal")) illegal<<<1, 64>>>(data);
  if (!std::strcmp(words[1], "nowhere")) nowhere<<<1, 64>>>((int *)16);
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
