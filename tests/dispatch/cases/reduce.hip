// hipCUB's sum on each device: the host chooses the configuration of the kernels by the device's name.
#include <cstdio>
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>

static int sum_on(int device) {
  int *in, *out;
  size_t size = 0;
  hipDeviceProp_t properties;
  if (hipSetDevice(device) || hipGetDeviceProperties(&properties, device)) return 1;
  std::printf("device %d %s\n", device, properties.gcnArchName);
  if (hipMalloc(&in, 4 << 20) || hipMalloc(&out, 4)) return 2;
  if (hipcub::DeviceReduce::Sum(nullptr, size, in, out, 1 << 20)) return 3;
  void *space;
  if (hipMalloc(&space, size)) return 4;
  if (hipcub::DeviceReduce::Sum(space, size, in, out, 1 << 20)) return 5;
  return hipDeviceSynchronize() ? 6 : 0;
}

int main() {
  int count;
  if (hipGetDeviceCount(&count)) return 10;
  for (int device = 0; device < count; device++)
    if (int failed = sum_on(device)) return failed;
}
