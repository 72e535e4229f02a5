// Variables of the device: constant, managed, static, arrays, addresses of each other.
#include "check.h"
#include <vector>
struct Setting { int a; float b; char c[3]; double d; };
__constant__ Setting setting = {1, 2.5f, {'x', 'y', 'z'}, 0.125};
__constant__ float table[256];
__device__ int counters[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__device__ int *pointer = counters + 3;
static __device__ long hidden = 40;
__managed__ int shared_number = 5;
__managed__ double shared_array[16];
namespace space { __device__ unsigned short inner = 0xabcd; }
template <typename T> __device__ T generic = T(7);
__device__ const int fixed[4] = {9, 8, 7, 6};
__global__ void use(double *out) {
  out[0] = setting.a + setting.b + setting.d + setting.c[2];
  out[1] = table[100];
  out[2] = *pointer + counters[0];
  out[3] = hidden++;
  out[4] = shared_number += 10;
  shared_array[threadIdx.x] = threadIdx.x + 0.5;
  out[5] = space::inner;
  out[6] = generic<float> + generic<int>;
  out[7] = fixed[blockDim.x & 3];
  counters[7] = 77;
}
int main() {
  double *d, r[8];
  DONE(hipMalloc(&d, 64));
  std::vector<float> t(256);
  for (int i = 0; i < 256; i++) t[i] = i * 1.5f;
  DONE(hipMemcpyToSymbol(HIP_SYMBOL(table), t.data(), 1024));
  use<<<1, 1>>>(d);
  DONE(hipMemcpy(r, d, 64, hipMemcpyDeviceToHost));
  RIGHT(r[0] == 1 + 2.5 + 0.125 + 'z');
  RIGHT(r[1] == 150);
  RIGHT(r[2] == 5);
  RIGHT(r[3] == 40);
  RIGHT(r[4] == 15 && shared_number == 15);
  RIGHT(shared_array[0] == 0.5);
  RIGHT(r[5] == 0xabcd);
  RIGHT(r[6] == 14);
  RIGHT(r[7] == 8);
  Setting changed = {100, 0, {0, 0, 1}, 0};
  DONE(hipMemcpyToSymbol(HIP_SYMBOL(setting), &changed, sizeof changed));
  float one = -4;
  DONE(hipMemcpyToSymbol(HIP_SYMBOL(table), &one, 4, 400, hipMemcpyHostToDevice));
  shared_number = 1000;
  hipStream_t s;
  DONE(hipStreamCreate(&s));
  int eights[2] = {80, 81};
  DONE(hipMemcpyToSymbolAsync(HIP_SYMBOL(counters), eights, 8, 0, hipMemcpyHostToDevice, s));
  DONE(hipStreamSynchronize(s));
  use<<<1, 2>>>(d);
  DONE(hipMemcpy(r, d, 64, hipMemcpyDeviceToHost));
  RIGHT(r[0] == 101 && r[1] == -4 && r[2] == 84 && r[3] >= 41);
  RIGHT(shared_number == 1010 || shared_number == 1020);
  RIGHT(r[7] == 7);
  int seen[8];
  DONE(hipMemcpyFromSymbol(seen, HIP_SYMBOL(counters), 32));
  RIGHT(seen[0] == 80 && seen[1] == 81 && seen[2] == 3 && seen[7] == 77);
  void *address;
  size_t size;
  DONE(hipGetSymbolAddress(&address, HIP_SYMBOL(counters)));
  DONE(hipGetSymbolSize(&size, HIP_SYMBOL(counters)));
  RIGHT(size == 32);
  DONE(hipMemset((char *)address + 4, 0, 4));
  DONE(hipMemcpyFromSymbolAsync(seen, HIP_SYMBOL(counters), 8, 4, hipMemcpyDeviceToHost, s));
  DONE(hipStreamSynchronize(s));
  RIGHT(seen[0] == 0 && seen[1] == 3);
  RIGHT(hipMemcpyToSymbol(HIP_SYMBOL(counters), eights, 64) != hipSuccess);
  RIGHT(hipMemcpyToSymbol((const void *)main, eights, 4) == hipErrorInvalidSymbol);
  return wrong;
}
