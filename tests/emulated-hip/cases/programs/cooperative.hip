// Cooperative groups: tiles, coalesced threads, the whole grid.
#include "check.h"
#include <hip/hip_cooperative_groups.h>
#include <vector>
namespace cg = cooperative_groups;
template <unsigned N> __device__ int tile_sum(cg::thread_block block, int v) {
  auto tile = cg::tiled_partition<N>(block);
  for (unsigned d = N / 2; d; d /= 2) v += tile.shfl_down(v, d);
  return tile.shfl(v, 0) * 100 + (int)tile.thread_rank();
}
__global__ void tiles(int *out) {
  auto block = cg::this_thread_block();
  int t = block.thread_rank();
  int *o = out + t * 8;
  o[0] = tile_sum<4>(block, t), o[1] = tile_sum<16>(block, t), o[2] = tile_sum<32>(block, t);
  o[3] = 0;
  if (t % 3 == 1) {
    auto active = cg::coalesced_threads();
    o[3] = active.size() * 100 + active.thread_rank();
    o[4] = active.shfl(t, 0);
  } else o[4] = -1;
  auto tile = cg::tiled_partition<16>(block);
  o[5] = tile.any(t == 20) * 2 + tile.all(t < 16);
  o[6] = (int)__popcll(tile.ballot(t % 5 == 0));
  o[7] = tile.shfl_xor(t, 5) + tile.meta_group_rank() * 1000;
}
__global__ void relax(float *a, float *b, int n, int rounds, float *norm) {
  auto grid = cg::this_grid();
  for (int r = 0; r < rounds; r++) {
    for (unsigned i = grid.thread_rank(); i < (unsigned)n; i += grid.size()) {
      float left = i ? a[i - 1] : 0, right = i + 1 < (unsigned)n ? a[i + 1] : 0;
      b[i] = 0.25f * left + 0.5f * a[i] + 0.25f * right;
    }
    grid.sync();
    float *x = a; a = b; b = x;
  }
  if (grid.thread_rank() == 0) {
    float s = 0;
    for (int i = 0; i < n; i++) s += a[i];
    *norm = s;
  }
}
int main() {
  const int n = 128;
  std::vector<int> r(n * 8);
  int *d;
  DONE(hipMalloc(&d, n * 32));
  tiles<<<1, n>>>(d);
  DONE(hipMemcpy(r.data(), d, n * 32, hipMemcpyDeviceToHost));
  hipDeviceProp_t p;
  DONE(hipGetDeviceProperties(&p, 0));
  int w = p.warpSize;
  bool ok[8];
  for (bool &b : ok) b = true;
  for (int t = 0; t < n; t++) {
    int *o = &r[t * 8];
    for (int k = 0, m = 4; k < 3; k++, m = k == 1 ? 16 : 32) {
      int base = t / m * m, s = m * base + m * (m - 1) / 2;
      ok[k] &= o[k] == s * 100 + t % m;
    }
    int first = t / w * w, size = 0, rank = 0, leader = -1;
    for (int i = first; i < first + w; i++) if (i % 3 == 1) {
      if (leader < 0) leader = i;
      rank += i < t, size++;
    }
    ok[3] &= o[3] == (t % 3 == 1 ? size * 100 + rank : 0);
    ok[4] &= o[4] == (t % 3 == 1 ? leader : -1);
    int b16 = t / 16;
    ok[5] &= o[5] == (b16 == 1) * 2 + (b16 == 0);
    int c = 0;
    for (int i = b16 * 16; i < b16 * 16 + 16; i++) c += i % 5 == 0;
    ok[6] &= o[6] == c;
    ok[7] &= o[7] == (t ^ 5) + b16 * 1000;
  }
  const char *names[] = {"tile of 4", "tile of 16", "tile of 32", "coalesced", "coalesced shfl", "any, all", "ballot", "xor"};
  for (int i = 0; i < 8; i++) judge(ok[i], names[i], "differs");
  int m = 3000, rounds = 7;
  std::vector<float> a(m), b(m), x(m);
  for (int i = 0; i < m; i++) a[i] = x[i] = i % 9;
  for (int k = 0; k < rounds; k++) {
    for (int i = 0; i < m; i++) b[i] = 0.25f * (i ? x[i - 1] : 0) + 0.5f * x[i] + 0.25f * (i + 1 < m ? x[i + 1] : 0);
    x = b;
  }
  float e = 0, norm, *da, *db, *dn;
  for (float v : x) e += v;
  DONE(hipMalloc(&da, m * 4));
  DONE(hipMalloc(&db, m * 4));
  DONE(hipMalloc(&dn, 4));
  DONE(hipMemcpy(da, a.data(), m * 4, hipMemcpyHostToDevice));
  void *args[] = {&da, &db, &m, &rounds, &dn};
  DONE(hipLaunchCooperativeKernel((const void *)relax, dim3(6), dim3(128), args, 0, 0));
  DONE(hipMemcpy(&norm, dn, 4, hipMemcpyDeviceToHost));
  RIGHT(norm == e);
  DONE(hipMemcpy(b.data(), rounds % 2 ? db : da, m * 4, hipMemcpyDeviceToHost));
  RIGHT(b == x);
  RIGHT(hipLaunchCooperativeKernel((const void *)relax, dim3(1000000), dim3(1024), args, 0, 0) == hipErrorCooperativeLaunchTooLarge);
  return wrong;
}
