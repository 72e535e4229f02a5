// Smooths a signal on the GPU, and clamps each sample softly first. Samples are rarely out of the limits: a profile tells
// the optimiser so, and it leaves the arithmetic of that case where it is rarely executed. Without a GPU it prints HIP's
// error text.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

namespace {

constexpr unsigned COUNT = 4096;
constexpr unsigned THREADS = 64;
constexpr unsigned TAPS = 4;

/// How far a sample may be out of the limits.
__device__ float knee(float low, float high) {
  const float width = high - low;
  return width * expf(-width / (1 + low * low + high * high));
}

__device__ float clamp(float value, float low, float high) {
  if (value < low)
    return low - fminf(low - value, knee(low, high));
  if (value > high)
    return high + fminf(value - high, knee(low, high));
  return value;
}

__global__ void smooth(float *into, const float *values, unsigned taps, float low, float high) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (unsigned tap = 0; tap < taps; ++tap)
    sum += clamp(values[i + tap], low, high);
  into[i] = sum / static_cast<float>(taps);
}

/// Smooths the samples in place; the last ones only lead in.
hipError_t run(std::vector<float> &samples) {
  const size_t size = samples.size() * sizeof(float);
  float *device = nullptr;
  hipError_t status = hipMalloc(reinterpret_cast<void **>(&device), 2 * size);
  if (status != hipSuccess)
    return status;
  float *const smoothed = device + samples.size();
  status = hipMemcpy(device, samples.data(), size, hipMemcpyHostToDevice);
  if (status == hipSuccess) {
    smooth<<<COUNT / THREADS, THREADS>>>(smoothed, device, TAPS, 0, 100);
    status = hipGetLastError();
  }
  if (status == hipSuccess)
    status = hipMemcpy(samples.data(), smoothed, COUNT * sizeof(float), hipMemcpyDeviceToHost);
  const hipError_t freed = hipFree(device);
  return status == hipSuccess ? freed : status;
}

} // namespace

int main() {
  std::vector<float> samples(COUNT + TAPS);
  for (unsigned i = 0; i < samples.size(); ++i)
    samples[i] = i % 1000 == 0 ? 120 : static_cast<float>(i % 97);
  if (const hipError_t status = run(samples); status != hipSuccess) {
    std::fprintf(stderr, "clamp: %s\n", hipGetErrorString(status));
    return 1;
  }
  double sum = 0;
  for (unsigned i = 0; i < COUNT; ++i)
    sum += samples[i];
  std::printf("smoothed %u samples, mean %.3f\n", COUNT, sum / COUNT);
}
