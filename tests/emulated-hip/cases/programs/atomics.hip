// Atomic operations on integers and floats of all sizes.
#include "check.h"
#include <hip/hip_fp16.h>
#include <vector>
struct S {
  float f;
  double d;
  int mx, mn;
  unsigned inc, dec;
  unsigned long long u64;
  int x;
  unsigned a, o, xr;
  float fm;
  int cas;
  float sys;
  float un;
};
__global__ void k(S *s) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&s->f, 0.5f);
  atomicAdd(&s->d, 0.25);
  atomicMax(&s->mx, t * 7 % 1001);
  atomicMin(&s->mn, -t);
  atomicInc(&s->inc, 99);
  atomicDec(&s->dec, 50);
  atomicAdd(&s->u64, 1ull << 33);
  atomicSub(&s->x, 2);
  atomicAnd(&s->a, ~(1u << (t % 20)));
  atomicOr(&s->o, 1u << (t % 24));
  atomicXor(&s->xr, 1u << (t % 32));
  atomicMax(&s->fm, (float)(t % 977)); atomicAdd_system(&s->sys, 1.f); unsafeAtomicAdd(&s->un, 2.f);
  int old = s->cas, seen;
  do { seen = old; old = atomicCAS(&s->cas, seen, seen + 3); } while (old != seen);
  __shared__ float l;
  if (threadIdx.x == 0) l = 0;
  __syncthreads();
  atomicAdd(&l, 1.f);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&s->sys, l);
}
int main() {
  S s{};
  s.mx = -1;
  s.mn = 5;
  s.a = ~0u;
  S *d;
  DONE(hipMalloc(&d, sizeof s));
  DONE(hipMemcpy(d, &s, sizeof s, hipMemcpyHostToDevice));
  k<<<32, 64>>>(d);
  DONE(hipDeviceSynchronize());
  DONE(hipMemcpy(&s, d, sizeof s, hipMemcpyDeviceToHost));
  int n = 2048;
  unsigned inc = 0, dec = 0, xr = 0;
  int mx = -1;
  for (int t = 0; t < n; t++) {
    inc = inc >= 99 ? 0 : inc + 1;
    dec = dec == 0 || dec > 50 ? 50 : dec - 1;
    xr ^= 1u << (t % 32);
    if (t * 7 % 1001 > mx) mx = t * 7 % 1001;
  }
  RIGHT(s.f == 1024.f);
  RIGHT(s.d == 512.0);
  RIGHT(s.mx == mx);
  RIGHT(s.mn == -2047);
  RIGHT(s.inc == inc);
  RIGHT(s.dec == dec);
  RIGHT(s.u64 == 2048ull << 33);
  RIGHT(s.x == -4096);
  RIGHT(s.a == ~0xfffffu);
  RIGHT(s.o == 0xffffffu);
  RIGHT(s.xr == xr);
  RIGHT(s.fm == 976.f);
  RIGHT(s.sys == 4096.f);
  RIGHT(s.un == 4096.f);
  RIGHT(s.cas == 3 * n);
  return wrong;
}
