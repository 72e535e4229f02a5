// Cooperative groups: tiles, coalesced threads, a grid that synchronises.
#include "check.h"
#include <hip/hip_cooperative_groups.h>
#include <vector>
namespace cg = cooperative_groups;
__global__ void tiles(const int *in, int *out, int *lead) {
  cg::thread_block b = cg::this_thread_block();
  auto t = cg::tiled_partition<16>(b);
  int v = in[b.thread_rank()];
  for (int d = 8; d; d /= 2) v += t.shfl_down(v, d);
  if (t.thread_rank() == 0) out[b.thread_rank() / 16] = v;
  b.sync();
  if (b.thread_rank() % 3 == 0) {
    auto c = cg::coalesced_threads(); if (c.thread_rank() == 0) atomicAdd(lead, (int)c.size());
  }
}
__global__ void phases(int *x, int n) {
  cg::grid_group g = cg::this_grid();
  for (int r = 0; r < 5; r++) {
    int i = g.thread_rank(); int v = i < n ? x[(i + 1) % n] : 0;
    g.sync();
    if (i < n) x[i] = v + r;
    g.sync();
  }
}
int main() {
  const int n = 256;
  std::vector<int> in(n), out(16), x(1000), e(1000);
  for (int i = 0; i < n; i++) in[i] = i * i;
  int *di, *d, *l;
  DONE(hipMalloc(&di, 4096));
  DONE(hipMalloc(&d, 64));
  DONE(hipMalloc(&l, 4));
  DONE(hipMemset(l, 0, 4));
  DONE(hipMemcpy(di, in.data(), n * 4, hipMemcpyHostToDevice)); tiles<<<1, n>>>(di, d, l);
  DONE(hipMemcpy(out.data(), d, 64, hipMemcpyDeviceToHost));
  int lead;
  DONE(hipMemcpy(&lead, l, 4, hipMemcpyDeviceToHost));
  bool ok = true;
  for (int i = 0; i < 16; i++) {
    int s = 0;
    for (int j = 0; j < 16; j++) s += in[16 * i + j];
    ok &= out[i] == s;
  }
  RIGHT(ok); RIGHT(lead == 86);
  for (int i = 0; i < 1000; i++) x[i] = e[i] = i * 3;
  int m = 1000;
  DONE(hipMemcpy(di, x.data(), 4000, hipMemcpyHostToDevice));
  for (int r = 0; r < 5; r++) {
    std::vector<int> p = e;
    for (int i = 0; i < m; i++) e[i] = p[(i + 1) % m] + r;
  }
  void *args[] = {&di, &m};
  DONE(hipLaunchCooperativeKernel((void *)phases, dim3(8), dim3(128), args, 0, 0));
  DONE(hipDeviceSynchronize());
  DONE(hipMemcpy(x.data(), di, 4000, hipMemcpyDeviceToHost)); RIGHT(x == e);
  return wrong;
}
