// Atomics of every width: 16 bits, pairs of halves, doubles, LDS, scopes and orders.
#include "check.h"
#include <hip/hip_fp16.h>
#include <vector>
__global__ void doubles(double *sum, double *least, double *most, float *f, double *in_lds) {
  __shared__ double s;
  __shared__ float g[2];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (t == 0) s = 0, g[0] = 0, g[1] = 1e9;
  __syncthreads();
  atomicAdd(sum, i * 0.5), atomicMin(least, 100. - i), atomicMax(most, i * 2.), atomicAdd(f, 1.5f);
  atomicAdd(&s, i * 1.), atomicAdd(&g[0], 2.f), atomicMin(&g[1], (float)(50 - t));
  __syncthreads();
  if (t == 0) atomicAdd(in_lds, s + g[0] + g[1]);
}
__global__ void halves(__half2 *pair, unsigned short *words) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsafeAtomicAdd(pair, __floats2half2_rn(1.f, 0.5f));
  // 16 bits by compare and swap of the 32 around them.
  unsigned *base = (unsigned *)((size_t)(words + i % 3) & ~3ull), shift = ((size_t)(words + i % 3) & 2) * 8, old = *base, seen;
  do {
    seen = old;
    old = atomicCAS(base, seen, (seen & ~(0xffffu << shift)) | ((((seen >> shift) + 1) & 0xffff) << shift));
  } while (old != seen);
}
__global__ void words(unsigned *u, unsigned long long *l, int *s, long long *ls) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicInc(&u[0], 99), atomicDec(&u[1], 99), atomicOr(&u[2], 1u << i % 32), atomicAnd(&u[3], ~(1u << i % 7)), atomicXor(&u[4], i);
  atomicMax(&u[5], i * 7u), atomicMin(&u[6], 5000u - i), atomicSub(&u[7], 3u);
  if (i % 64 == 5) atomicExch(&u[8], 1234u);
  atomicMax(&l[0], (unsigned long long)i << 40), atomicMin(&l[1], (1ull << 50) - i), atomicAdd(&l[2], 1ull << 33);
  atomicOr(&l[3], 1ull << i % 64), atomicXor(&l[4], (unsigned long long)i << 20), atomicExch(&l[5], 77ull);
  atomicMin(&s[0], -i), atomicMax(&s[1], -i - 1), atomicMin(&ls[0], -((long long)i << 40)), atomicMax(&ls[1], -5ll - i);
  atomicAdd_system(&s[2], 1), __hip_atomic_fetch_add(&s[3], 2, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
  int expected = __hip_atomic_load(&s[4], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  while (!__hip_atomic_compare_exchange_strong(&s[4], &expected, expected + 3, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {}
}
__device__ int lock;
__global__ void locked(int *value) {
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1)) {}
    __threadfence();
    *(volatile int *)value = *(volatile int *)value + 1;
    __threadfence();
    atomicExch(&lock, 0);
  }
}
int main() {
  const int n = 512;
  double *d, r[4], init[4] = {0, 1e9, -1e9, 0};
  float *f, rf, zero = 0;
  DONE(hipMalloc(&d, 32));
  DONE(hipMalloc(&f, 4));
  DONE(hipMemcpy(d, init, 32, hipMemcpyHostToDevice));
  DONE(hipMemcpy(f, &zero, 4, hipMemcpyHostToDevice));
  doubles<<<4, 128>>>(d, d + 1, d + 2, f, d + 3);
  DONE(hipMemcpy(r, d, 32, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(&rf, f, 4, hipMemcpyDeviceToHost));
  RIGHT(r[0] == n * (n - 1) / 4. && r[1] == 100 - 511 && r[2] == 1022 && rf == 768);
  RIGHT(r[3] == n * (n - 1) / 2 + 4 * (256 + 50 - 127));
  __half2 *h, rh;
  unsigned short *w, rw[4];
  DONE(hipMalloc(&h, 4));
  DONE(hipMalloc(&w, 8));
  DONE(hipMemset(h, 0, 4));
  DONE(hipMemset(w, 0xff, 8));
  halves<<<4, 128>>>(h, w);
  DONE(hipMemcpy(&rh, h, 4, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(rw, w, 8, hipMemcpyDeviceToHost));
  RIGHT(__low2float(rh) == 512 && __high2float(rh) == 256);
  RIGHT(rw[0] == 170 && rw[1] == 170 && rw[2] == 169 && rw[3] == 0xffff);
  std::vector<unsigned> u = {0, 50, 0, ~0u, 0, 0, ~0u, 0, 0}, ru(9);
  std::vector<unsigned long long> l = {0, ~0ull, 0, 0, 0, 0}, rl(6);
  std::vector<int> s = {0, -1000000, 0, 0, 0}, rs(5);
  std::vector<long long> q = {0, -1000000}, rq(2);
  unsigned *du;
  unsigned long long *dl;
  int *ds;
  long long *dq;
  DONE(hipMalloc(&du, 36));
  DONE(hipMalloc(&dl, 48));
  DONE(hipMalloc(&ds, 20));
  DONE(hipMalloc(&dq, 16));
  DONE(hipMemcpy(du, u.data(), 36, hipMemcpyHostToDevice));
  DONE(hipMemcpy(dl, l.data(), 48, hipMemcpyHostToDevice));
  DONE(hipMemcpy(ds, s.data(), 20, hipMemcpyHostToDevice));
  DONE(hipMemcpy(dq, q.data(), 16, hipMemcpyHostToDevice));
  words<<<4, 128>>>(du, dl, ds, dq);
  DONE(hipMemcpy(ru.data(), du, 36, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(rl.data(), dl, 48, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(rs.data(), ds, 20, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(rq.data(), dq, 16, hipMemcpyDeviceToHost));
  unsigned dec = 50;
  for (int i = 0; i < n; i++) dec = dec == 0 || dec > 99 ? 99 : dec - 1;
  RIGHT(ru[0] == n % 100 && ru[1] == dec && ru[2] == ~0u && ru[3] == ~127u && ru[4] == 0 && ru[5] == 511 * 7);
  RIGHT(ru[6] == 5000 - 511 && ru[7] == 0u - 3 * n && ru[8] == 1234);
  RIGHT(rl[0] == 511ull << 40 && rl[1] == (1ull << 50) - 511 && rl[2] == (unsigned long long)n << 33 && rl[3] == ~0ull);
  RIGHT(rl[4] == 0 && rl[5] == 77);
  RIGHT(rs[0] == -511 && rs[1] == -1 && rs[2] == n && rs[3] == 2 * n && rs[4] == 3 * n);
  RIGHT(rq[0] == -(511ll << 40) && rq[1] == -5);
  DONE(hipMemset(ds, 0, 4));
  locked<<<40, 64>>>(ds);
  DONE(hipMemcpy(rs.data(), ds, 4, hipMemcpyDeviceToHost));
  RIGHT(rs[0] == 40);
  return wrong;
}
