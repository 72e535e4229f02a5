// Each thread writes its number; the host checks them. Without a GPU it prints HIP's error text.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

namespace {

constexpr unsigned THREADS = 64;

__global__ void count(unsigned *out) { out[threadIdx.x] = threadIdx.x; }

/// Runs the kernel and copies what it wrote.
hipError_t run(std::vector<unsigned> &numbers) {
  unsigned *device = nullptr;
  hipError_t status = hipMalloc(reinterpret_cast<void **>(&device), THREADS * sizeof(unsigned));
  if (status != hipSuccess)
    return status;
  count<<<1, THREADS>>>(device);
  status = hipGetLastError();
  if (status == hipSuccess)
    status = hipMemcpy(numbers.data(), device, THREADS * sizeof(unsigned), hipMemcpyDeviceToHost);
  const hipError_t freed = hipFree(device);
  return status == hipSuccess ? freed : status;
}

} // namespace

int main() {
  std::vector<unsigned> numbers(THREADS);
  if (const hipError_t status = run(numbers); status != hipSuccess) {
    std::fprintf(stderr, "hello: %s\n", hipGetErrorString(status));
    return 1;
  }
  for (unsigned i = 0; i < THREADS; ++i) {
    if (numbers[i] != i) {
      std::fprintf(stderr, "hello: thread %u wrote %u\n", i, numbers[i]);
      return 2;
    }
  }
  std::printf("hello from %u threads\n", THREADS);
}
