// Numbers of all kinds against the host; functions of the math library within some last places.
#include "check.h"
#include <cmath>
#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
#include <vector>
#define N 4096
template <class T> __host__ __device__ T mix(T a, T b) {
  T s = 0;
  for (int i = 0; i < 20; i++) {
    s = s * T(0.75) + a / (b * b + T(1)); a = b - a; b = s;
  }
  return s;
}
__global__ void k(const float *a, float *o, double *od, float *oh, float *fn, long long *li) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  float x = a[t], y = a[(t + 1) % N];
  o[t] = mix(x, y);
  od[t] = mix((double)x, (double)y);
  __half h = __float2half(x), g = __float2half(y);
  oh[t] = __half2float(__hadd(__hmul(h, g), h));
  float *f = fn + 8 * t;
  float p = fabsf(x) + 0.25f;
  f[0] = sqrtf(p);
  f[1] = sinf(x);
  f[2] = expf(x * 0.1f);
  f[3] = logf(p);
  f[4] = powf(p, 1.5f);
  f[5] = floorf(x);
  f[6] = fmodf(x, 3.f);
  f[7] = atan2f(x, y);
  long long z = (long long)(x * 1e6), w = (long long)(y * 1e3) | 1;
  li[4 * t] = z / w;
  li[4 * t + 1] = z % w;
  li[4 * t + 2] = __mul64hi(z, w << 20);
  li[4 * t + 3] = __popcll(z) + __clzll(w) + __ffsll(z) + __brev((unsigned)z);
}
int main() {
  std::vector<float> a(N), o(N), oh(N), fn(8 * N);
  std::vector<double> od(N);
  std::vector<long long> li(4 * N);
  for (int i = 0; i < N; i++) a[i] = (i * 7919 % 2003 - 1001) / 64.f;
  float *da, *d1, *d3, *d4;
  double *d2;
  long long *d5;
  DONE(hipMalloc(&da, N * 4));
  DONE(hipMalloc(&d1, N * 4));
  DONE(hipMalloc(&d3, N * 4));
  DONE(hipMalloc(&d4, N * 32));
  DONE(hipMalloc(&d2, N * 8));
  DONE(hipMalloc(&d5, N * 32));
  DONE(hipMemcpy(da, a.data(), N * 4, hipMemcpyHostToDevice));
  k<<<N / 128, 128>>>(da, d1, d2, d3, d4, d5);
  DONE(hipGetLastError());
  DONE(hipMemcpy(o.data(), d1, N * 4, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(od.data(), d2, N * 8, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(oh.data(), d3, N * 4, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(fn.data(), d4, N * 32, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(li.data(), d5, N * 32, hipMemcpyDeviceToHost));
  bool f = true, d = true, h = true, l = true; double worst[8] = {};
  for (int t = 0; t < N; t++) { float x = a[t], y = a[(t + 1) % N]; f &= o[t] == mix(x, y); d &= od[t] == mix((double)x, (double)y); float p = fabsf(x) + 0.25f; __half hh = __float2half(__half2float(__float2half(x)) * __half2float(__float2half(y))); h &= oh[t] == __half2float(__float2half(__half2float(hh) + __half2float(__float2half(x))));
    double e[8] = {sqrt((double)p), sin((double)x), exp((double)(x * 0.1f)), log((double)p), pow((double)p,
        1.5), floor((double)x), fmod((double)x, 3.0), atan2((double)x, (double)y)};
    for (int i = 0; i < 8; i++) {
      double er = fabs(fn[8 * t + i] - e[i]) / (fabs(e[i]) + 1e-3); if (!(er <= worst[i])) worst[i] = er;
    }
    long long z = (long long)(x * 1e6), w = (long long)(y * 1e3) | 1; unsigned br = 0; for (int i = 0; i < 32; i++) br |= ((unsigned)z >> i & 1) << (31 - i); l &= li[4 * t] == z / w && li[4 * t + 1] == z % w && li[4 * t + 2] == (long long)((__int128)z * (w << 20) >> 64) && li[4 * t + 3] == (long long)(__builtin_popcountll(z) + __builtin_clzll(w) + __builtin_ffsll(z) + br); }
  RIGHT(f);
  RIGHT(d);
  RIGHT(h);
  RIGHT(l);
  for (int i = 0; i < 8; i++) {
    judge(worst[i] < 3e-6, "function", "inexact"); if (worst[i] >= 3e-6) printf("  %d: %g\n", i, worst[i]);
  }
  return wrong;
}
