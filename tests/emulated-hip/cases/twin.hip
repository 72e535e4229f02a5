// One function on the host and on the GPU, with the same arguments: its counters must be the same.
#include "check.h"
#include <vector>

__host__ __device__ __attribute__((noinline)) float clamp(float value, float low, float high) {
  if (value < low) return low;
  if (value > high) return high;
  for (int i = 0; i < 5; i++) if (value > 10 * i) value += 0.25f;
  return value;
}
__global__ void clamp_all(float *values, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = clamp(values[i], -20, 100);
}

int main() {
  std::vector<float> host(500), device;
  for (size_t i = 0; i < host.size(); i++) host[i] = (float)(i * 37 % 200) - 60;
  float *values;
  DONE(hipMalloc(&values, host.size() * 4));
  DONE(hipMemcpy(values, host.data(), host.size() * 4, hipMemcpyHostToDevice));
  clamp_all<<<8, 64>>>(values, host.size());
  device = host;
  for (float &value : host) value = clamp(value, -20, 100);
  DONE(hipMemcpy(device.data(), values, device.size() * 4, hipMemcpyDeviceToHost));
  RIGHT(device == host);
  return wrong;
}
