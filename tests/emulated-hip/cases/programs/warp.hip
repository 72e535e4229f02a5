// Shuffles, votes and ballots; the size of waves is asked for.
#include "check.h"
#include <vector>
__global__ void k(const int *in, int *o, unsigned long long *m) {
  int t = threadIdx.x, v = in[t], w = warpSize;
  int *p = o + t * 12;
  p[0] = __shfl(v, 5);
  p[1] = __shfl_xor(v, 3);
  p[2] = __shfl_up(v, 2);
  p[3] = __shfl_down(v, 7);
  p[4] = __shfl(v, t + 1, 8); p[5] = __any(v == 3); p[6] = __all(v >= 0);
  int s = v;
  for (int d = w / 2; d; d /= 2) s += __shfl_xor(s, d);
  p[7] = s;
  int sc = v;
  for (int d = 1; d < w; d *= 2) {
    int y = __shfl_up(sc, d); if ((t % w) >= d) sc += y;
  }
  p[8] = sc;
  p[9] = __lane_id();
  double dv = v * 0.5;
  dv = __shfl_xor(dv, 1);
  p[10] = (int)(dv * 2);
  p[11] = w;
  unsigned long long b = __ballot(v & 1); m[2 * t] = b;
  if (t % 5 == 1) m[2 * t + 1] = __activemask(); else m[2 * t + 1] = 0;
}
int main() {
  const int n = 128; std::vector<int> in(n), o(n * 12); std::vector<unsigned long long> m(2 * n);
  for (int i = 0; i < n; i++) in[i] = i * 37 % 101;
  int *di, *d;
  unsigned long long *dm;
  DONE(hipMalloc(&di, n * 4));
  DONE(hipMalloc(&d, n * 48));
  DONE(hipMalloc(&dm, n * 16));
  DONE(hipMemcpy(di, in.data(), n * 4, hipMemcpyHostToDevice));
  k<<<1, n>>>(di, d, dm);
  DONE(hipMemcpy(o.data(), d, n * 48, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(m.data(), dm, n * 16, hipMemcpyDeviceToHost));
  hipDeviceProp_t pr;
  DONE(hipGetDeviceProperties(&pr, 0));
  int w = pr.warpSize;
  bool ok[13];
  for (bool &b : ok) b = true;
  for (int t = 0; t < n; t++) {
    int base = t / w * w, l = t % w, *p = &o[t * 12];
    long s = 0, sc = 0;
    unsigned long long bal = 0, act = 0;
    bool any = false;
    for (int i = 0; i < w; i++) {
      int v = in[base + i];
      s += v;
      if (i <= l) sc += v;
      if (v & 1) bal |= 1ull << i;
      any |= v == 3;
      if ((base + i) % 5 == 1) act |= 1ull << i;
    }
    ok[0] &= p[0] == in[base + 5];
    ok[1] &= p[1] == in[t ^ 3];
    ok[2] &= p[2] == (l >= 2 ? in[t - 2] : in[t]);
    ok[3] &= p[3] == (l + 7 < w ? in[t + 7] : in[t]);
    ok[4] &= p[4] == in[t / 8 * 8 + (t + 1) % 8];
    ok[5] &= p[5] == any;
    ok[6] &= p[6] == 1;
    ok[7] &= p[7] == s;
    ok[8] &= p[8] == sc;
    ok[9] &= p[9] == l;
    ok[10] &= p[10] == in[t ^ 1];
    ok[11] &= p[11] == w;
    ok[12] &= m[2 * t] == bal && m[2 * t + 1] == (t % 5 == 1 ? act : 0);
  }
  const char *names[] = {"shfl", "shfl_xor", "shfl_up", "shfl_down", "shfl width", "any", "all", "sum", "scan",
      "lane", "double", "size", "ballot"};
  for (int i = 0; i < 13; i++) judge(ok[i], names[i], "differs");
  return wrong;
}
