#include <hip/hip_runtime.h>
#include <cstdio>
void launch_1(int *p, int firsts, int inits);
void launch_2(int *p, int firsts, int inits);
int main() {
  int *p;
  if (hipMalloc(&p, 4096) != hipSuccess) return 1;
  launch_1(p, 3, 2);
  launch_2(p, 1, 0);
  if (hipDeviceSynchronize() != hipSuccess) return 1;
  printf("done\n");
}
