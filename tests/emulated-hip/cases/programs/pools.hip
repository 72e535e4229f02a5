// Memory pools, virtual memory, handles of other processes.
#include "check.h"
#include <vector>
__global__ void fill(int *x, size_t n, int v) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = v + i;
}
int main() {
  hipStream_t s;
  DONE(hipStreamCreate(&s));
  int supported = 0;
  DONE(hipDeviceGetAttribute(&supported, hipDeviceAttributeMemoryPoolsSupported, 0));
  RIGHT(supported == 1);
  hipMemPool_t pool;
  DONE(hipDeviceGetDefaultMemPool(&pool, 0));
  uint64_t keep = 1 << 20, used = 0;
  DONE(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &keep));
  int *p[8], x = 0;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 8; i++) {
      DONE(hipMallocAsync((void **)&p[i], 10000 * (i + 1), s));
      fill<<<4, 64, 0, s>>>(p[i], 2500 * (i + 1), i + round);
    }
    DONE(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
    RIGHT(used >= 360000);
    bool ok = true;
    for (int i = 0; i < 8; i++) {
      DONE(hipMemcpyAsync(&x, p[i] + 2499, 4, hipMemcpyDeviceToHost, s));
      DONE(hipStreamSynchronize(s));
      ok &= x == i + round + 2499;
      DONE(hipFreeAsync(p[i], s));
    }
    RIGHT(ok);
  }
  DONE(hipStreamSynchronize(s));
  DONE(hipMemPoolTrimTo(pool, 0));
  hipMemPoolProps props{};
  props.allocType = hipMemAllocationTypePinned;
  props.location.type = hipMemLocationTypeDevice;
  hipMemPool_t own;
  DONE(hipMemPoolCreate(&own, &props));
  DONE(hipMallocFromPoolAsync((void **)&p[0], 4096, own, s));
  fill<<<1, 64, 0, s>>>(p[0], 1024, 5);
  DONE(hipMemcpyAsync(&x, p[0] + 1023, 4, hipMemcpyDeviceToHost, s));
  DONE(hipStreamSynchronize(s));
  RIGHT(x == 1028);
  DONE(hipFreeAsync(p[0], s));
  DONE(hipStreamSynchronize(s));
  DONE(hipMemPoolDestroy(own));
  // Virtual memory: two pieces of memory side by side, one of them twice.
  hipMemAllocationProp prop{};
  prop.type = hipMemAllocationTypePinned;
  prop.location.type = hipMemLocationTypeDevice;
  size_t grain = 0;
  DONE(hipMemGetAllocationGranularity(&grain, &prop, hipMemAllocationGranularityMinimum));
  RIGHT(grain > 0 && grain % 4096 == 0);
  hipMemGenericAllocationHandle_t one, two;
  DONE(hipMemCreate(&one, grain, &prop, 0));
  DONE(hipMemCreate(&two, grain, &prop, 0));
  void *space;
  DONE(hipMemAddressReserve(&space, 3 * grain, 0, nullptr, 0));
  char *at = (char *)space;
  DONE(hipMemMap(at, grain, 0, one, 0));
  DONE(hipMemMap(at + grain, grain, 0, two, 0));
  hipMemAccessDesc access{};
  access.location = prop.location, access.flags = hipMemAccessFlagsProtReadWrite;
  DONE(hipMemSetAccess(at, 2 * grain, &access, 1));
  size_t n = 2 * grain / 4;
  fill<<<8, 256, 0, s>>>((int *)at, n, 3);
  DONE(hipStreamSynchronize(s));
  DONE(hipMemcpy(&x, at + 2 * grain - 4, 4, hipMemcpyDeviceToHost));
  RIGHT(x == (int)n + 2);
  unsigned long long flags;
  DONE(hipMemGetAccess(&flags, &access.location, at));
  RIGHT(flags == hipMemAccessFlagsProtReadWrite);
  DONE(hipMemUnmap(at, grain));
  DONE(hipMemMap(at + 2 * grain, grain, 0, one, 0));
  DONE(hipMemSetAccess(at + 2 * grain, grain, &access, 1));
  DONE(hipMemcpy(&x, at + 2 * grain + 40, 4, hipMemcpyDeviceToHost));
  RIGHT(x == 13);
  DONE(hipMemUnmap(at + grain, grain));
  DONE(hipMemUnmap(at + 2 * grain, grain));
  DONE(hipMemRelease(one));
  DONE(hipMemRelease(two));
  DONE(hipMemAddressFree(space, 3 * grain));
  int *dev;
  DONE(hipMalloc(&dev, 4096));
  hipIpcMemHandle_t handle;
  hipError_t refused = hipIpcGetMemHandle(&handle, dev);
  std::printf("memory for other processes: %s\n", hipGetErrorName(refused));
  RIGHT(refused != hipSuccess);
  (void)hipGetLastError();
  int *managed;
  DONE(hipMallocManaged((void **)&managed, 4096));
  DONE(hipMemAdvise(managed, 4096, hipMemAdviseSetReadMostly, 0));
  hipError_t prefetch = hipMemPrefetchAsync(managed, 4096, 0, s);
  std::printf("prefetch: %s\n", hipGetErrorName(prefetch));
  fill<<<1, 64, 0, s>>>(managed, 1024, 1);
  DONE(hipStreamSynchronize(s));
  RIGHT(managed[1023] == 1024);
  return wrong;
}
