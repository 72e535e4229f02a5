// Functions whose text differs between host and device, and between GPUs; instances of a template.
#include "hip.h"

__attribute__((host, device, noinline)) int pick(int value) {
#ifdef __HIP_DEVICE_COMPILE__
  if (value > 3) return 1; // device
  return value;
#else
  return value + 40; // host
#endif
}

__attribute__((device, noinline)) int by_gpu(int value) {
#ifdef __gfx90a__
  return value * 3; // gfx90a
#else
  return value * 5; // gfx1030
#endif
}

template <typename T> __attribute__((device)) T twice(T value) {
  return value > 0 ? value + value : -value;
}

__attribute__((global)) void kernel(int *out) {
  *out = pick(*out) + by_gpu(*out) + twice(*out) + (int)twice(1.0f * *out);
}

int main(void) {
  int devices = 0;
  hipGetDeviceCount(&devices);
  if (devices > 100) return pick(devices); // never
  for (int device = 0; device < devices; device++) {
    hipSetDevice(device);
    kernel<<<1, 64>>>(0);
  }
  return 7;
}
