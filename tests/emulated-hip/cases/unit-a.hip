#include <hip/hip_runtime.h>
__global__ void kernel_a(int *p) { *p += 40; }
extern "C" int run_a(int *p) {
  kernel_a<<<1, 1>>>(p);
  return hipGetLastError();
}
