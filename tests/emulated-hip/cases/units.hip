#include <hip/hip_runtime.h>
#include <cstdio>
extern "C" int run_a(int *);
extern "C" int run_b(int *);
int main() {
  int *p = nullptr, value = 0;
  if (hipMalloc(&p, sizeof value) != hipSuccess || hipMemcpy(p, &value, sizeof value, hipMemcpyHostToDevice) != hipSuccess)
    return 1;
  if (run_a(p) != 0 || run_b(p) != 0)
    return 2;
  if (hipMemcpy(&value, p, sizeof value, hipMemcpyDeviceToHost) != hipSuccess)
    return 3;
  std::printf("%d\n", value);
  return value != 42;
}
