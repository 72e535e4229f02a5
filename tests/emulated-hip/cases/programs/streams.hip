// Streams, events, priorities, host functions, asynchronous copies, rows.
#include "check.h"
#include <atomic>
#include <vector>
__global__ void add(int *x, int n, int v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = x[i] * 3 + v;
}
static std::atomic<int> called;
int main() {
  const int n = 10000, S = 4;
  hipStream_t st[S];
  hipEvent_t ev[S], a, b;
  int lo, hi;
  DONE(hipDeviceGetStreamPriorityRange(&lo, &hi));
  int *h; DONE(hipHostMalloc(&h, n * 4 * S)); int *d[S];
  for (int s = 0; s < S; s++) {
    DONE(hipStreamCreateWithPriority(&st[s], hipStreamNonBlocking, s % 2 ? lo : hi));
    DONE(hipEventCreate(&ev[s]));
    DONE(hipMalloc(&d[s], n * 4));
    for (int i = 0; i < n; i++) h[s * n + i] = s + i;
  }
  DONE(hipEventCreate(&a));
  DONE(hipEventCreate(&b));
  DONE(hipEventRecord(a, st[0]));
  for (int s = 0; s < S; s++) { DONE(hipMemcpyAsync(d[s], h + s * n, n * 4, hipMemcpyHostToDevice, st[s])); if (s) DONE(hipStreamWaitEvent(st[s], ev[s - 1], 0)); for (int r = 0; r < 3; r++) add<<<(n + 255) / 256, 256, 0, st[s]>>>(d[s], n, r);
    if (s) DONE(hipMemcpyAsync(d[s], d[s - 1], 400, hipMemcpyDeviceToDevice, st[s]));
    DONE(hipMemcpyAsync(h + s * n, d[s], n * 4, hipMemcpyDeviceToHost, st[s]));
    DONE(hipEventRecord(ev[s], st[s]));
    DONE(hipLaunchHostFunc(st[s], [](void *) { called++; }, nullptr)); }
  DONE(hipStreamWaitEvent(st[0], ev[3], 0));
  DONE(hipEventRecord(b, st[0]));
  DONE(hipEventSynchronize(b));
  for (auto s : st) DONE(hipStreamSynchronize(s));
  float ms = -1;
  DONE(hipEventElapsedTime(&ms, a, b));
  RIGHT(ms >= 0);
  RIGHT(called == 4);
  bool ok = true;
  for (int s = 0; s < S; s++) for (int i = 0; i < n; i++) {
    int src = i < 100 ? 0 : s, v = src + i;
    for (int r = 0; r < 3; r++) v = v * 3 + r;
    ok &= h[s * n + i] == v;
  }
  RIGHT(ok);
  DONE(hipMemsetAsync(d[0], 0x5a, n * 4, st[0]));
  DONE(hipMemsetD32Async(d[1], 77, n, st[1]));
  DONE(hipDeviceSynchronize());
  std::vector<int> r(n);
  DONE(hipMemcpy(r.data(), d[0], n * 4, hipMemcpyDefault));
  RIGHT(r[n - 1] == 0x5a5a5a5a);
  DONE(hipMemcpy(r.data(), d[1], n * 4, hipMemcpyDefault));
  RIGHT(r[0] == 77 && r[n - 1] == 77);
  RIGHT(hipStreamQuery(st[2]) == hipSuccess);
  int *p2;
  size_t pitch;
  DONE(hipMallocPitch((void **)&p2, &pitch, 100, 10));
  std::vector<char> src(70 * 10), back(70 * 10);
  for (size_t i = 0; i < src.size(); i++) src[i] = i * 7;
  DONE(hipMemcpy2D(p2, pitch, src.data(), 70, 70, 10, hipMemcpyHostToDevice));
  DONE(hipMemcpy2D(back.data(), 70, p2, pitch, 70, 10, hipMemcpyDeviceToHost));
  RIGHT(src == back);
  void *q;
  DONE(hipMallocAsync(&q, 1 << 20, st[0]));
  DONE(hipFreeAsync(q, st[0]));
  DONE(hipStreamSynchronize(st[0]));
  RIGHT(true);
  for (auto s : st) DONE(hipStreamDestroy(s));
  DONE(hipHostFree(h));
  return wrong;
}
