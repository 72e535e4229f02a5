// A unit of the library for which it has a generic target alone.
#include <hip/hip_runtime.h>
__global__ void generic(int *p) { *p += 3; }
extern "C" int run_generic(int *p) {
  generic<<<1, 1>>>(p);
  return hipGetLastError();
}
