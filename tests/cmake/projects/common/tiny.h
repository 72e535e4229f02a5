// The few declarations behind HIP's launch syntax. Without HIP's own headers (-nogpuinc) a file
// compiles in a tenth of the time, and the code object is as real.
#pragma once

#include <cstddef>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))

struct ihipStream_t;

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

extern "C" {
int hipLaunchKernel(const void *, dim3, dim3, void **, std::size_t, ihipStream_t *);
int __hipPushCallConfiguration(dim3, dim3, std::size_t = 0, ihipStream_t * = nullptr);
int __hipPopCallConfiguration(dim3 *, dim3 *, std::size_t *, ihipStream_t **);
int hipGetLastError(void);
const char *hipGetErrorString(int);
}
