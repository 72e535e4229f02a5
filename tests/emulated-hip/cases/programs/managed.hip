// Managed and constant memory, symbols.
#include "check.h"
__managed__ int counter = 5; __constant__ float coef[4]; __device__ int table[64];
__global__ void k(double *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 2 + coef[i % 4];
  atomicAdd(&counter, 1);
  if (i < 64) table[i] = i * i;
}
int main() {
  double *x;
  const int n = 5000;
  DONE(hipMallocManaged(&x, n * 8));
  for (int i = 0; i < n; i++) x[i] = i;
  float c[4] = {1, 2, 3, 4.5f};
  DONE(hipMemcpyToSymbol(HIP_SYMBOL(coef), c, 16));
  hipError_t adv = hipMemAdvise(x, n * 8, hipMemAdviseSetReadMostly, 0);
  hipError_t pre = hipMemPrefetchAsync(x, n * 8, 0, 0);
  printf("advise %s, prefetch %s\n", hipGetErrorString(adv), hipGetErrorString(pre));
  (void)hipGetLastError();
  k<<<(n + 127) / 128, 128>>>(x, n);
  DONE(hipDeviceSynchronize());
  bool ok = true;
  for (int i = 0; i < n; i++) ok &= x[i] == i * 2.0 + c[i % 4];
  RIGHT(ok);
  RIGHT(counter == 5 + (n + 127) / 128 * 128);
  int t[64];
  DONE(hipMemcpyFromSymbol(t, HIP_SYMBOL(table), 256));
  RIGHT(t[63] == 63 * 63);
  void *p;
  DONE(hipGetSymbolAddress(&p, HIP_SYMBOL(table)));
  size_t s;
  DONE(hipGetSymbolSize(&s, HIP_SYMBOL(table)));
  RIGHT(s == 256);
  hipPointerAttribute_t at;
  DONE(hipPointerGetAttributes(&at, x));
  RIGHT(at.type == hipMemoryTypeManaged);
  DONE(hipFree(x));
  return wrong;
}
