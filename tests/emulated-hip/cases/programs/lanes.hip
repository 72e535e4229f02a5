// Intrinsics of waves and of integers.
#include "check.h"
#include <algorithm>
#include <string>
#include <vector>
#define N 128
__global__ void waves(long long *o) {
  int t = threadIdx.x;
  long long *p = o + t * 24;
  unsigned long long all = ~0ull;
  double x = t * 0.75;
  p[0] = (long long)(__shfl(x, 3) * 4), p[1] = (long long)(__shfl_down(x, 2) * 4);
  p[2] = __shfl_xor((long long)t << 40, 7), p[3] = __shfl_up((unsigned long long)t << 35, 5);
  p[4] = __ballot(t % 3 == 0), p[5] = __popcll(__ballot(t & 4));
  p[6] = __match_any_sync(all, t / 5);
  int same = 0;
  p[7] = __match_all_sync(all, 7, &same), p[8] = same;
  p[9] = __match_all_sync(all, t & 1, &same), p[10] = same;
  p[11] = __any_sync(all, t == 77), p[12] = __all_sync(all, t < 64);
  p[13] = __reduce_add_sync(all, t), p[14] = __reduce_max_sync(all, t * 31 % 67), p[15] = __reduce_min_sync(all, -t);
  p[16] = (long long)__reduce_xor_sync(all, (unsigned)t * 2654435761u);
  p[17] = __shfl_sync(all, t, (t + 1) & 31, 32);
  p[18] = t & 1 ? __activemask() : 0;
  p[19] = __builtin_amdgcn_readfirstlane(t + 5);
  p[20] = __builtin_amdgcn_ds_bpermute((t ^ 9) * 4, t * 3);
  p[21] = __builtin_amdgcn_update_dpp(-1, t, 0x111, 0xf, 0xf, false);
  p[22] = __builtin_amdgcn_mov_dpp(t, 0xb1, 0xf, 0xf, true);
  p[23] = (long long)__lane_id();
}
__global__ void integers(const unsigned *in, unsigned long long *o, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  unsigned x = in[t], y = in[(t + 1) % n];
  unsigned long long l = (unsigned long long)x << 32 | y, *p = o + t * 20;
  p[0] = __popc(x), p[1] = __clz(x), p[2] = __ffs(x), p[3] = __brev(x);
  p[4] = __popcll(l), p[5] = __clzll(l), p[6] = __ffsll((long long)l), p[7] = __brevll(l);
  p[8] = __umulhi(x, y), p[9] = (unsigned)__mulhi((int)x, (int)y), p[10] = __umul64hi(l, l ^ 12345);
  p[11] = __byte_perm(x, y, 0x3715), p[12] = __funnelshift_l(x, y, t), p[13] = __funnelshift_r(x, y, t);
  p[14] = (unsigned)__mul24(x, y), p[15] = (unsigned)__umul24(x, y), p[16] = __sad(x & 0xfffffff, y & 0xfffffff, 5), p[17] = __usad(x, y, 5);
  p[18] = (unsigned)__hadd(x, y), p[19] = __uhadd(x, y);
}
static unsigned reversed(unsigned x) { unsigned r = 0; for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i); return r; }
int main() {
  std::vector<long long> r(N * 24);
  long long *d;
  DONE(hipMalloc(&d, r.size() * 8));
  waves<<<1, N>>>(d);
  DONE(hipMemcpy(r.data(), d, r.size() * 8, hipMemcpyDeviceToHost));
  hipDeviceProp_t prop;
  DONE(hipGetDeviceProperties(&prop, 0));
  const int w = prop.warpSize;
  bool ok[24];
  for (bool &b : ok) b = true;
  for (int t = 0; t < N; t++) {
    long long *p = &r[t * 24];
    int f = t / w * w, l = t - f;
    unsigned long long third = 0, fives = 0, four = 0, odd = 0, xors = 0;
    long long sum = 0, most = -1;
    for (int i = 0; i < w; i++) {
      third |= (unsigned long long)((f + i) % 3 == 0) << i, fives |= (unsigned long long)((f + i) / 5 == t / 5) << i;
      four += ((f + i) & 4) != 0, odd |= (unsigned long long)(i & 1) << i;
      sum += f + i, most = std::max<long long>(most, (f + i) * 31 % 67), xors ^= (unsigned)(f + i) * 2654435761u;
    }
    unsigned long long full = w == 64 ? ~0ull : 0xffffffffull;
    ok[0] &= p[0] == (f + 3) * 3, ok[1] &= p[1] == (l + 2 < w ? t + 2 : t) * 3;
    ok[2] &= p[2] == (long long)(t ^ 7) << 40, ok[3] &= p[3] == (long long)(l >= 5 ? t - 5 : t) << 35;
    ok[4] &= (unsigned long long)p[4] == third, ok[5] &= p[5] == (long long)four;
    ok[6] &= (unsigned long long)p[6] == fives;
    ok[7] &= (unsigned long long)p[7] == full, ok[8] &= p[8] == 1;
    ok[9] &= p[9] == 0, ok[10] &= p[10] == 0;
    ok[11] &= p[11] == (77 / w == t / w), ok[12] &= p[12] == (f + w <= 64);
    ok[13] &= p[13] == sum, ok[14] &= p[14] == most, ok[15] &= p[15] == -(f + w - 1);
    ok[16] &= (unsigned)p[16] == (unsigned)xors;
    ok[17] &= p[17] == t / 32 * 32 + ((t + 1) & 31);
    ok[18] &= (unsigned long long)p[18] == (t & 1 ? odd : 0);
    ok[19] &= p[19] == f + 5, ok[20] &= p[20] == (f + (l ^ 9)) * 3;
    ok[21] &= p[21] == (t % 16 ? t - 1 : -1), ok[22] &= p[22] == (t ^ 1);
    ok[23] &= p[23] == l;
  }
  for (int i = 0; i < 24; i++) judge(ok[i], ("wave " + std::to_string(i)).c_str(), "differs");
  const int n = 300;
  std::vector<unsigned> in(n);
  std::vector<unsigned long long> o(n * 20);
  for (int i = 0; i < n; i++) in[i] = i < 33 ? (i ? 1u << (i - 1) : 0) : i * 2654435761u;
  unsigned *di;
  unsigned long long *dout;
  DONE(hipMalloc(&di, n * 4));
  DONE(hipMalloc(&dout, o.size() * 8));
  DONE(hipMemcpy(di, in.data(), n * 4, hipMemcpyHostToDevice));
  integers<<<2, 160>>>(di, dout, n);
  DONE(hipMemcpy(o.data(), dout, o.size() * 8, hipMemcpyDeviceToHost));
  bool good[20];
  for (bool &b : good) b = true;
  for (int t = 0; t < n; t++) {
    unsigned x = in[t], y = in[(t + 1) % n];
    unsigned long long l = (unsigned long long)x << 32 | y, *p = &o[t * 20];
    unsigned s = t & 31;
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned perm = 0;
    for (int i = 0, sel = 0x3715; i < 4; i++) perm |= (unsigned)(both >> (sel >> 4 * i & 7) * 8 & 255) << 8 * i;
    auto low24 = [](unsigned v) { return (int)(v << 8) >> 8; };
    unsigned long long want[20] = {(unsigned)__builtin_popcount(x), x ? (unsigned)__builtin_clz(x) : 32u, (unsigned)__builtin_ffs(x),
      reversed(x), (unsigned)__builtin_popcountll(l), l ? (unsigned)__builtin_clzll(l) : 64u, (unsigned)__builtin_ffsll(l),
      (unsigned long long)reversed(y) << 32 | reversed(x), (unsigned long long)x * y >> 32,
      (unsigned)((long long)(int)x * (int)y >> 32), (unsigned long long)((unsigned __int128)l * (l ^ 12345) >> 64),
      perm, (unsigned)((both << s) >> 32), (unsigned)(both >> s),
      (unsigned)(low24(x) * (long long)low24(y)), (unsigned)((x & 0xffffff) * (unsigned long long)(y & 0xffffff)),
      (unsigned)((x & 0xfffffff) > (y & 0xfffffff) ? (x & 0xfffffff) - (y & 0xfffffff) + 5 : (y & 0xfffffff) - (x & 0xfffffff) + 5), (x > y ? x - y : y - x) + 5,
      (unsigned)(((long long)(int)x + (int)y) >> 1), ((unsigned long long)x + y) >> 1};
    for (int i = 0; i < 20; i++) if (p[i] != want[i] && good[i]) good[i] = false, std::printf("%d of %x %x: %llx not %llx\n", i, x, y, p[i], want[i]);
  }
  for (int i = 0; i < 20; i++) judge(good[i], ("integer " + std::to_string(i)).c_str(), "differs");
  return wrong;
}
