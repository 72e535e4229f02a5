// Clamps numbers on the GPU. The device function has three ways through; which are taken, and how often,
// is what a profile tells. Without a GPU it prints HIP's error text.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

namespace {

constexpr unsigned COUNT = 256;
constexpr unsigned THREADS = 64;

__device__ __noinline__ float clamp(float value, float low, float high) {
  if (value < low)
    return low;
  if (value > high)
    return high;
  return value;
}

__global__ void clamp_all(float *values, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count)
    values[i] = clamp(values[i], 0, 100);
}

/// Clamps the numbers in place.
hipError_t run(std::vector<float> &numbers) {
  const size_t size = numbers.size() * sizeof(float);
  float *device = nullptr;
  hipError_t status = hipMalloc(reinterpret_cast<void **>(&device), size);
  if (status != hipSuccess)
    return status;
  status = hipMemcpy(device, numbers.data(), size, hipMemcpyHostToDevice);
  if (status == hipSuccess) {
    clamp_all<<<COUNT / THREADS, THREADS>>>(device, COUNT);
    status = hipGetLastError();
  }
  if (status == hipSuccess)
    status = hipMemcpy(numbers.data(), device, size, hipMemcpyDeviceToHost);
  const hipError_t freed = hipFree(device);
  return status == hipSuccess ? freed : status;
}

} // namespace

int main() {
  std::vector<float> numbers(COUNT);
  for (unsigned i = 0; i < COUNT; ++i)
    numbers[i] = static_cast<float>(i);
  if (const hipError_t status = run(numbers); status != hipSuccess) {
    std::fprintf(stderr, "clamp: %s\n", hipGetErrorString(status));
    return 1;
  }
  std::printf("clamped %u numbers\n", COUNT);
}
