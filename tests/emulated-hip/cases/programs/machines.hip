// Several GPUs, what a GPU says of itself, resets.
#include "check.h"
#include <cstring>
#include <string>
#include <vector>
__global__ void mark(int *x, int v) { x[blockIdx.x * blockDim.x + threadIdx.x] = v + threadIdx.x; }
__global__ void add(int *to, const int *from) { to[threadIdx.x] += from[threadIdx.x]; }
int main() {
  int count = 0;
  DONE(hipGetDeviceCount(&count));
  RIGHT(count == 2);
  hipDeviceProp_t p[2];
  for (int i = 0; i < 2; i++) {
    DONE(hipGetDeviceProperties(&p[i], i));
    hipDeviceProp_t &q = p[i];
    std::printf("device %d: %s %s, %zu MiB, %d units, %d MHz, %d bits, L2 %d\n", i, q.name, q.gcnArchName, q.totalGlobalMem >> 20,
        q.multiProcessorCount, q.clockRate / 1000, q.memoryBusWidth, q.l2CacheSize);
    RIGHT(q.totalGlobalMem >> 30 >= 1 && q.sharedMemPerBlock >= 65536 && (q.warpSize == 32 || q.warpSize == 64));
    RIGHT(q.maxThreadsPerBlock == 1024 && q.maxThreadsDim[0] == 1024 && q.maxGridSize[0] > 65535 && q.maxGridSize[1] >= 65535);
    RIGHT(q.multiProcessorCount > 0 && q.clockRate > 0 && q.memoryClockRate > 0 && q.memoryBusWidth > 0 && q.l2CacheSize > 0);
    RIGHT(q.regsPerBlock > 0 && q.totalConstMem > 0 && q.major >= 9 && q.maxThreadsPerMultiProcessor >= 1024);
    RIGHT(std::string(q.gcnArchName).rfind("gfx", 0) == 0 && q.canMapHostMemory && q.cooperativeLaunch && q.concurrentKernels);
    int v = 0;
    DONE(hipDeviceGetAttribute(&v, hipDeviceAttributeWarpSize, i));
    RIGHT(v == q.warpSize);
    DONE(hipDeviceGetAttribute(&v, hipDeviceAttributeMultiprocessorCount, i));
    RIGHT(v == q.multiProcessorCount);
    char bus[64], name[64];
    DONE(hipDeviceGetPCIBusId(bus, 64, i));
    int back = -1;
    DONE(hipDeviceGetByPCIBusId(&back, bus));
    RIGHT(back == i);
    hipDevice_t device;
    DONE(hipDeviceGet(&device, i));
    DONE(hipDeviceGetName(name, 64, device));
    RIGHT(!strcmp(name, q.name));
    size_t total;
    DONE(hipDeviceTotalMem(&total, device));
    RIGHT(total == q.totalGlobalMem);
    hipUUID uuid;
    DONE(hipDeviceGetUuid(&uuid, device));
  }
  RIGHT(memcmp(&p[0].uuid, &p[1].uuid, 16) != 0 && p[0].pciBusID != p[1].pciBusID);
  int can = 0;
  DONE(hipDeviceCanAccessPeer(&can, 0, 1));
  RIGHT(can == 1);
  int *d[2], r[64];
  hipStream_t s[2];
  hipEvent_t e;
  for (int i = 0; i < 2; i++) {
    DONE(hipSetDevice(i));
    DONE(hipMalloc(&d[i], 256));
    DONE(hipStreamCreate(&s[i]));
    mark<<<1, 64, 0, s[i]>>>(d[i], 100 * (i + 1));
  }
  DONE(hipDeviceSynchronize());
  DONE(hipSetDevice(0));
  DONE(hipDeviceSynchronize());
  DONE(hipMemcpyPeerAsync(d[0], 0, d[1], 1, 128, s[0]));
  DONE(hipStreamSynchronize(s[0]));
  DONE(hipMemcpy(r, d[0], 256, hipMemcpyDeviceToHost));
  RIGHT(r[0] == 200 && r[31] == 231 && r[32] == 132);
  DONE(hipDeviceEnablePeerAccess(1, 0));
  RIGHT(hipDeviceEnablePeerAccess(1, 0) == hipErrorPeerAccessAlreadyEnabled);
  (void)hipGetLastError();
  add<<<1, 64, 0, s[0]>>>(d[0], d[1]);
  DONE(hipEventCreate(&e));
  DONE(hipEventRecord(e, s[0]));
  DONE(hipSetDevice(1));
  DONE(hipStreamWaitEvent(s[1], e, 0));
  DONE(hipMemcpyDtoDAsync((hipDeviceptr_t)d[1], (hipDeviceptr_t)d[0], 256, s[1]));
  DONE(hipStreamSynchronize(s[1]));
  DONE(hipMemcpy(r, d[1], 256, hipMemcpyDefault));
  RIGHT(r[0] == 400 && r[32] == 132 + 232);
  int now = -1;
  DONE(hipGetDevice(&now));
  RIGHT(now == 1);
  hipDeviceProp_t wanted{};
  wanted.major = p[0].major, wanted.minor = p[0].minor, wanted.totalGlobalMem = 1 << 20;
  DONE(hipChooseDevice(&now, &wanted));
  size_t limit = 0;
  DONE(hipDeviceGetLimit(&limit, hipLimitMallocHeapSize));
  RIGHT(limit > 0);
  unsigned flags;
  DONE(hipGetDeviceFlags(&flags));
  int version = 0, driver = 0;
  DONE(hipRuntimeGetVersion(&version));
  DONE(hipDriverGetVersion(&driver));
  RIGHT(version >= 70000000);
  hipCtx_t context;
  DONE(hipDevicePrimaryCtxRetain(&context, 1));
  DONE(hipDevicePrimaryCtxRelease(1));
  // What was started before a reset does not make the next program wrong.
  DONE(hipSetDevice(0));
  mark<<<1, 64>>>(d[0], 7);
  DONE(hipDeviceReset());
  DONE(hipMalloc(&d[0], 256));
  DONE(hipMemset(d[0], 1, 256));
  mark<<<1, 64>>>(d[0], 9);
  DONE(hipMemcpy(r, d[0], 256, hipMemcpyDeviceToHost));
  RIGHT(r[63] == 72);
  return wrong;
}
