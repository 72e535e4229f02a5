// Graphs: captured, built, changed.
#include "check.h"
#include <vector>
__global__ void step(int *x, int v) { x[threadIdx.x] = x[threadIdx.x] * 2 + v; }
int main() {
  int *d, h[64], r[64];
  for (int i = 0; i < 64; i++) h[i] = i;
  DONE(hipMalloc(&d, 256));
  hipStream_t s, s2;
  DONE(hipStreamCreate(&s));
  DONE(hipStreamCreate(&s2));
  hipEvent_t f, j;
  DONE(hipEventCreate(&f));
  DONE(hipEventCreate(&j));
  int *d2;
  DONE(hipMalloc(&d2, 256));
  hipGraph_t g;
  hipGraphExec_t e;
  DONE(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal));
  DONE(hipMemcpyAsync(d, h, 256, hipMemcpyHostToDevice, s));
  DONE(hipEventRecord(f, s));
  DONE(hipStreamWaitEvent(s2, f, 0));
  DONE(hipMemcpyAsync(d2, h, 256, hipMemcpyHostToDevice, s2));
  step<<<1, 64, 0, s2>>>(d2, 9);
  DONE(hipEventRecord(j, s2));
  step<<<1, 64, 0, s>>>(d, 1);
  DONE(hipStreamWaitEvent(s, j, 0));
  step<<<1, 64, 0, s>>>(d, 2);
  DONE(hipStreamEndCapture(s, &g));
  DONE(hipGraphInstantiate(&e, g, nullptr, nullptr, 0));
  for (int i = 0; i < 5; i++) DONE(hipGraphLaunch(e, s));
  DONE(hipStreamSynchronize(s));
  DONE(hipMemcpy(r, d, 256, hipMemcpyDeviceToHost));
  bool ok = true;
  for (int i = 0; i < 64; i++) ok &= r[i] == (i * 2 + 1) * 2 + 2;
  RIGHT(ok);
  DONE(hipMemcpy(r, d2, 256, hipMemcpyDeviceToHost));
  ok = true;
  for (int i = 0; i < 64; i++) ok &= r[i] == i * 2 + 9;
  RIGHT(ok);
  hipGraph_t g2;
  DONE(hipGraphCreate(&g2, 0));
  int v = 5;
  void *args[] = {&d, &v};
  hipKernelNodeParams p{};
  p.func = (void *)step;
  p.gridDim = dim3(1);
  p.blockDim = dim3(64);
  p.kernelParams = args;
  hipGraphNode_t a, b, m;
  DONE(hipGraphAddKernelNode(&a, g2, nullptr, 0, &p));
  DONE(hipGraphAddKernelNode(&b, g2, &a, 1, &p));
  DONE(hipGraphAddMemcpyNode1D(&m, g2, &b, 1, r, d, 256, hipMemcpyDeviceToHost));
  hipGraphExec_t e2;
  DONE(hipGraphInstantiate(&e2, g2, nullptr, nullptr, 0));
  DONE(hipGraphLaunch(e2, s));
  DONE(hipStreamSynchronize(s));
  RIGHT(r[3] == (((3 * 2 + 1) * 2 + 2) * 2 + 5) * 2 + 5);
  v = 7;
  DONE(hipGraphExecKernelNodeSetParams(e2, b, &p));
  int before = r[3];
  DONE(hipGraphLaunch(e2, s));
  DONE(hipStreamSynchronize(s));
  RIGHT(r[3] == (before * 2 + 5) * 2 + 7);
  return wrong;
}
