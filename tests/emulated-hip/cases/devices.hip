// Every device computes with its own code; peers copy from each other.
#include "check.h"
#include <cstring>

__global__ void fill(unsigned *out, unsigned from) { out[threadIdx.x] = from + threadIdx.x * warpSize; }

int main() {
  int count;
  unsigned *buffers[8], numbers[64];
  DONE(hipGetDeviceCount(&count));
  for (int device = 0; device < count; device++) {
    hipDeviceProp_t properties;
    DONE(hipSetDevice(device));
    DONE(hipGetDeviceProperties(&properties, device));
    std::printf("device %d %s wave %d\n", device, properties.gcnArchName, properties.warpSize);
    DONE(hipMalloc(&buffers[device], 256));
    fill<<<1, 64>>>(buffers[device], device * 100);
    DONE(hipMemcpy(numbers, buffers[device], 256, hipMemcpyDeviceToHost));
    RIGHT(numbers[0] == device * 100u && numbers[63] == device * 100u + 63u * properties.warpSize);
  }
  if (count > 1) {
    DONE(hipMemcpyPeer(buffers[1], 1, buffers[0], 0, 256));
    DONE(hipMemcpy(numbers, buffers[1], 256, hipMemcpyDeviceToHost));
    RIGHT(numbers[0] == 0);
  }
  return wrong;
}
