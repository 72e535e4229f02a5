// A library that asks for the name of device 0.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <stdio.h>

void ask(const char *who) {
  hipDeviceProp_t properties;
  hipError_t status = hipGetDeviceProperties(&properties, 0);
  printf("%s %s %d\n", who, properties.gcnArchName, status); // After the call, so that it is no tail call.
}
