#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

const char *shown(void) {
  static hipDeviceProp_t properties;
  return hipGetDeviceProperties(&properties, 0) ? "no device" : properties.gcnArchName;
}
