// A decision of three conditions in a function of host and device.
#include "hip.h"

__attribute__((host, device, noinline)) int decide(int number) {
  if (number > 0 && (number > 1 || number < -1)) return 1;
  return 0;
}

__attribute__((global)) void kernel(int *into) { *into = decide(*into); }

int main(void) {
  int devices = 0;
  hipGetDeviceCount(&devices);
  for (int device = 0; device < devices; device++) {
    hipSetDevice(device);
    kernel<<<1, 64>>>(0);
  }
  return 7 + decide(0);
}
