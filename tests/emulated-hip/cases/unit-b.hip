#include <hip/hip_runtime.h>
__global__ void kernel_b(int *p) { *p += 2; }
extern "C" int run_b(int *p) {
  kernel_b<<<1, 1>>>(p);
  return hipGetLastError();
}
