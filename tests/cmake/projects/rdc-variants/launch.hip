// Launches a kernel that needs the device function of twice.hip, and counts the right results.
#include "runtime.h"

__device__ int twice(int value);

__global__ void store(int *out) { out[__builtin_amdgcn_workitem_id_x()] = twice(__builtin_amdgcn_workitem_id_x()) + 1; }

int count_right() {
  int *out = nullptr, results[LANES] = {};
  if (hipMalloc(reinterpret_cast<void **>(&out), sizeof results))
    return -1;
  store<<<1, LANES>>>(out);
  if (hipMemcpy(results, out, sizeof results, TO_HOST))
    return -2;
  int right = 0;
  for (int lane = 0; lane < LANES; ++lane)
    right += results[lane] == 2 * lane + 1;
  return right;
}
