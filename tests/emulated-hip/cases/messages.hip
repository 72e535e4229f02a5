// What kernels tell the host while they run: printf, malloc; and how they end: assert, trap.
#include "check.h"
#include <cassert>
#include <cstring>

__global__ void say(int n) { printf("n %d thread %d of %s\n", n, (int)threadIdx.x, "a kernel"); }
__global__ void allocate(int **kept) {
  int *mine = (int *)malloc(64);
  if (mine) mine[3] = threadIdx.x * 3;
  kept[threadIdx.x] = mine;
}
__global__ void collect(int **kept, int *out) {
  out[threadIdx.x] = kept[threadIdx.x] ? kept[threadIdx.x][3] : -1;
  free(kept[threadIdx.x]);
}
__global__ void check(int n) { assert(n != 42 && "the answer"); }
__global__ void trap() { __builtin_trap(); }

int main(int, char **words) {
  if (!std::strcmp(words[1], "printf")) {
    say<<<2, 40>>>(42);
    DONE(hipDeviceSynchronize());
    RIGHT(words[1] != nullptr);
  } else if (!std::strcmp(words[1], "malloc")) {
    int **kept, *out, numbers[16];
    DONE(hipMalloc(&kept, 128)); DONE(hipMalloc(&out, 64));
    allocate<<<1, 16>>>(kept);
    collect<<<1, 16>>>(kept, out);
    DONE(hipMemcpy(numbers, out, 64, hipMemcpyDeviceToHost));
    int right = 0;
    for (int i = 0; i < 16; i++) right += numbers[i] == 3 * i;
    RIGHT(right == 16);
  } else {
    if (!std::strcmp(words[1], "assert")) check<<<1, 1>>>(42); else trap<<<1, 1>>>();
    hipError_t status = hipDeviceSynchronize();
    std::printf("status %d: %s\n", status, hipGetErrorString(status));
    return status != hipSuccess ? 3 : 0;
  }
  return wrong;
}
