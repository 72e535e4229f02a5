// What a program asks a GPU.
#include "check.h"

int main() {
  hipDeviceProp_t properties;
  DONE(hipGetDeviceProperties(&properties, 0));
  std::printf("%s %d %zu %d\n", properties.gcnArchName, properties.multiProcessorCount, properties.sharedMemPerBlock,
              properties.warpSize);
  return wrong;
}
