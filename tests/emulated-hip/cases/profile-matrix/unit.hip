// One unit of a program, copied for each with its UNIT; PROGRAM is a number, NAME() gives the units the same or different names.
#include "hip.h"
#define JOINED(a, b) a##b
#define WITH(a, b) JOINED(a, b)
#ifdef SAME_NAMES
#define NAME(name) name
#else
#define NAME(name) WITH(name, WITH(_, UNIT))
#endif

namespace {
__device__ __attribute__((noinline)) int NAME(half)(int a) { return a + PROGRAM; }
__global__ void NAME(first)(int *p) {
  int lane = __builtin_amdgcn_workitem_id_x();
  if (lane & 1) p[lane] = NAME(half)(lane);
}
}  // namespace
static __global__ void NAME(init)(int *p) {
  if (__builtin_amdgcn_workitem_id_x() & 1) p[UNIT] = PROGRAM;
}
__global__ void WITH(idle_, UNIT)(int *p) { p[0] = PROGRAM; }

void WITH(launch_, UNIT)(int *p, bool is_first) {
  if (is_first) NAME(first)<<<1, 64>>>(p);
  else NAME(init)<<<1, 64>>>(p);
}
