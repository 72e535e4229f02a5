// Prints what the library computes.
#include <hip/hip_runtime.h>
#include <cstdio>
extern "C" int rocblas_create_handle(int *);
int main() {
  int *p = nullptr, value = 0;
  if (hipMalloc(reinterpret_cast<void **>(&p), sizeof value) != hipSuccess ||
      hipMemcpy(p, &value, sizeof value, hipMemcpyHostToDevice) != hipSuccess)
    return 1;
  if (int status = rocblas_create_handle(p))
    return status;
  if (hipDeviceSynchronize() != hipSuccess || hipMemcpy(&value, p, sizeof value, hipMemcpyDeviceToHost) != hipSuccess)
    return 3;
  std::printf("%d\n", value);
  return value != 66;
}
