// A kernel, a function that it calls, and a kernel that nobody launches.
#include "hip.h"

__attribute__((device, noinline)) float scale(float factor, float value) {
  if (factor == 0) return 0;
  return factor * value;
}

__attribute__((global)) void saxpy(int count, float factor, const float *from, float *into) {
  int index = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (index < count) into[index] += scale(factor, from[index]);
}

__attribute__((global)) void unused(int *into) {
  for (int index = 0; index < 4; index++) into[index] = index;
}

int main(void) {
  int devices = 0;
  hipGetDeviceCount(&devices);
  for (int device = 0; device < devices; device++) {
    hipSetDevice(device);
    for (int count = 0; count <= device; count++) saxpy<<<1, 64>>>(64, 2, 0, 0);
  }
  return 7;
}
