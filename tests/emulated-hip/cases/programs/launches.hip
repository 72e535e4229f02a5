// Every way to start a kernel, occupancy, callbacks, values in memory that streams wait for.
#include "check.h"
#include <hip/hip_ext.h>
#include <atomic>
#include <vector>
__global__ void fill(int *x, int n, int v) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = v + (int)gridDim.x;
}
__global__ void shape(int *o) {
  unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  o[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}
__global__ void dynamic(int *o) {
  extern __shared__ int s[];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  o[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];
}
__global__ __launch_bounds__(1024) void wide(int *o) { o[threadIdx.x] = threadIdx.x * 2; }
static std::atomic<int> calls;
static void called(hipStream_t, hipError_t status, void *data) { calls += status == hipSuccess ? *(int *)data : 1000; }
int main() {
  const int n = 1000;
  int *d, r[4096], value = 7, count = n;
  DONE(hipMalloc(&d, sizeof r));
  auto first = [&] { int x = -1; return hipMemcpy(&x, d, 4, hipMemcpyDeviceToHost) ? -2 : x; };
  void *args[] = {&d, &count, &value};
  DONE(hipLaunchKernel((const void *)fill, dim3(8), dim3(128), args, 0, 0));
  RIGHT(first() == 15);
  hipLaunchKernelGGL(fill, dim3(4), dim3(256), 0, 0, d, n, 20);
  RIGHT(first() == 24);
  hipEvent_t start, stop;
  DONE(hipEventCreate(&start));
  DONE(hipEventCreate(&stop));
  value = 30;
  DONE(hipExtLaunchKernel((const void *)fill, dim3(2), dim3(512), args, 0, 0, start, stop, 0));
  DONE(hipEventSynchronize(stop));
  float ms = -1;
  DONE(hipEventElapsedTime(&ms, start, stop));
  RIGHT(first() == 32 && ms >= 0);
  hipLaunchConfig_t config{};
  config.gridDim = dim3(1), config.blockDim = dim3(1024);
  value = 40;
  DONE(hipLaunchKernelExC(&config, (const void *)fill, args));
  RIGHT(first() == 41);
  DONE(hipLaunchCooperativeKernel((const void *)fill, dim3(2), dim3(64), args, 0, 0));
  RIGHT(first() == 42);
  shape<<<dim3(3, 2, 2), dim3(5, 3, 4)>>>(d);
  DONE(hipMemcpy(r, d, 12 * 60 * 4, hipMemcpyDeviceToHost));
  bool ok = true;
  for (int i = 0; i < 720; i++) ok &= r[i] == i / 60 * 1000 + i % 60;
  RIGHT(ok);
  dynamic<<<1, 300, 300 * 4>>>(d);
  DONE(hipMemcpy(r, d, 1200, hipMemcpyDeviceToHost));
  RIGHT(r[0] == 299 && r[299] == 0);
  wide<<<1, 1024>>>(d);
  DONE(hipMemcpy(r, d, 4096, hipMemcpyDeviceToHost));
  RIGHT(r[1023] == 2046);
  int blocks = 0, size = 0, grid = 0;
  DONE(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 128, 0));
  RIGHT(blocks > 0);
  int with_lds = 0;
  DONE(hipOccupancyMaxActiveBlocksPerMultiprocessor(&with_lds, dynamic, 128, 30000));
  RIGHT(with_lds > 0 && with_lds < blocks);
  DONE(hipOccupancyMaxPotentialBlockSize(&grid, &size, fill, 0, 0));
  RIGHT(size >= 64 && size <= 1024 && grid > 0);
  hipFuncAttributes attributes;
  DONE(hipFuncGetAttributes(&attributes, (const void *)wide));
  RIGHT(attributes.maxThreadsPerBlock == 1024 && attributes.numRegs > 0);
  DONE(hipFuncSetAttribute((const void *)dynamic, hipFuncAttributeMaxDynamicSharedMemorySize, 4096));
  DONE(hipFuncSetCacheConfig((const void *)dynamic, hipFuncCachePreferL1));
  hipStream_t s, t;
  int least, most;
  DONE(hipDeviceGetStreamPriorityRange(&least, &most));
  DONE(hipStreamCreateWithPriority(&s, hipStreamNonBlocking, most));
  DONE(hipStreamCreateWithFlags(&t, hipStreamDefault));
  unsigned flags;
  int priority;
  DONE(hipStreamGetFlags(s, &flags));
  DONE(hipStreamGetPriority(s, &priority));
  RIGHT(flags == hipStreamNonBlocking && priority == most);
  int five = 5, six = 6;
  fill<<<1, 64, 0, s>>>(d, 64, 1);
  DONE(hipStreamAddCallback(s, called, &five, 0));
  fill<<<1, 64, 0, s>>>(d, 64, 2);
  DONE(hipLaunchHostFunc(s, [](void *data) { calls += *(int *)data; }, &six));
  DONE(hipStreamSynchronize(s));
  RIGHT(calls == 11 && first() == 3);
  unsigned *flag;
  DONE(hipExtMallocWithFlags((void **)&flag, 8, hipMallocSignalMemory));
  DONE(hipStreamWriteValue32(t, flag, 0, 0));
  DONE(hipStreamSynchronize(t));
  DONE(hipStreamWaitValue32(s, flag, 9, hipStreamWaitValueEq, 0xffffffff));
  fill<<<1, 64, 0, s>>>(d, 64, 100);
  RIGHT(hipStreamQuery(s) == hipErrorNotReady);
  (void)hipGetLastError();
  DONE(hipStreamWriteValue32(t, flag, 9, 0));
  DONE(hipStreamSynchronize(s));
  RIGHT(first() == 101);
  hipEvent_t done;
  DONE(hipEventCreateWithFlags(&done, hipEventDisableTiming | hipEventBlockingSync));
  RIGHT(hipEventQuery(done) == hipSuccess);
  DONE(hipEventRecord(done, s));
  DONE(hipEventSynchronize(done));
  RIGHT(hipEventElapsedTime(&ms, start, done) == hipErrorInvalidHandle);
  (void)hipGetLastError();
  RIGHT(hipStreamSynchronize((hipStream_t)0) == hipSuccess);
  hipFunction_t function;
  DONE(hipGetFuncBySymbol(&function, (const void *)fill));
  value = 60;
  DONE(hipModuleLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, s, args, nullptr));
  struct { int *p; int n, v; } packed = {d, 64, 70};
  size_t bytes = sizeof packed;
  void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes, HIP_LAUNCH_PARAM_END};
  DONE(hipModuleLaunchKernel(function, 3, 1, 1, 64, 1, 1, 0, s, nullptr, extra));
  DONE(hipStreamSynchronize(s));
  RIGHT(first() == 73);
  DONE(hipStreamDestroy(s));
  DONE(hipStreamDestroy(t));
  return wrong;
}
