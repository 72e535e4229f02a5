// Work-groups of a cooperative launch wait for each other.
#include "check.h"
#include <hip/hip_cooperative_groups.h>
__global__ void exchange(int *data, int *out) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  unsigned i = grid.thread_rank(), n = grid.size();
  data[i] = i * 3;
  grid.sync();
  out[i] = data[n - 1 - i];
  grid.sync();
  data[i] = out[(i + 64) % n];
}
int main() {
  int *data, *out, numbers[512];
  DONE(hipMalloc(&data, 2048)); DONE(hipMalloc(&out, 2048));
  void *arguments[] = {&data, &out};
  DONE(hipLaunchCooperativeKernel((const void *)exchange, dim3(8), dim3(64), arguments, 0, 0));
  DONE(hipMemcpy(numbers, data, 2048, hipMemcpyDeviceToHost));
  int right = 0;
  for (int i = 0; i < 512; i++) right += numbers[i] == 3 * (511 - (i + 64) % 512);
  RIGHT(right == 512);
  return wrong;
}
