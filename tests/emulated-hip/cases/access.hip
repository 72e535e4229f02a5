// What a GPU may access: memory of another one, mappings of virtual memory; pages of the host that are not there; waits by clocks.
#include <hip/hip_runtime.h>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <sys/mman.h>
__global__ void store(int *x, int v) { x[threadIdx.x] = v; }
__global__ void load(const int *x, int *y) { y[threadIdx.x] = x[threadIdx.x]; }
__global__ void unwritten(const int *x, int *y) {
  __shared__ int lds[64];
  y[threadIdx.x] = (x[threadIdx.x] != 0) + 2 * (((volatile int *)lds)[threadIdx.x] != 0);
}
__global__ void spin(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {}
}
static int failed(hipError_t e, const char *what) {
  if (e == hipSuccess) return 0;
  std::printf("%s: %s\n", what, hipGetErrorString(e));
  return 3;
}
#define TRY(call) do { if (int code = failed(call, #call)) return code; } while (0)
static hipMemGenericAllocationHandle_t handle;
static int *reserve(size_t size) {
  hipMemAllocationProp prop{};
  prop.type = hipMemAllocationTypePinned, prop.location = {hipMemLocationTypeDevice, 0};
  void *at = nullptr;
  if (hipMemCreate(&handle, size, &prop, 0) || hipMemAddressReserve(&at, size, 0, nullptr, 0) || hipMemMap(at, size, 0, handle, 0)) return nullptr;
  return (int *)at;
}
int main(int, char **words) {
  std::string_view what = words[1];
  const size_t size = 2 << 20;
  int *own, *other, results[64] = {};
  TRY(hipSetDevice(0));
  TRY(hipMalloc(&own, 256));
  if (what == "peer" || what == "enabled") {
    TRY(hipSetDevice(1));
    TRY(hipMalloc(&other, 256));
    TRY(hipSetDevice(0));
    if (what == "enabled") TRY(hipDeviceEnablePeerAccess(1, 0));
    store<<<1, 64>>>(other, 7);
    TRY(hipDeviceSynchronize());
    TRY(hipMemcpy(results, other, 256, hipMemcpyDefault));
    return results[63] == 7 ? 0 : 4;
  }
  if (what == "unset" || what == "set" || what == "read" || what == "readonly") {
    int supported = 0;
    TRY(hipDeviceGetAttribute(&supported, hipDeviceAttributeVirtualMemoryManagementSupported, 0));
    if (!supported) return 5;
    int *at = reserve(size);
    if (!at) return 6;
    hipMemAccessDesc access{{hipMemLocationTypeDevice, 0}, what == "set" ? hipMemAccessFlagsProtReadWrite : hipMemAccessFlagsProtRead};
    if (what != "unset") TRY(hipMemSetAccess(at, size, &access, 1));
    if (what == "read") load<<<1, 64>>>(at, own); else store<<<1, 64>>>(at, 7);
    TRY(hipDeviceSynchronize());
    unsigned long long flags = 0;
    TRY(hipMemGetAccess(&flags, &access.location, at));
    TRY(hipMemcpy(results, what == "read" ? own : at, 256, hipMemcpyDefault));
    TRY(hipMemUnmap(at, size));
    TRY(hipMemAddressFree(at, size));
    TRY(hipMemRelease(handle));
    return what == "read" ? results[63] == 0 && flags == 1 ? 0 : 4 : results[63] == 7 && flags == 3 ? 0 : 4;
  }
  if (what == "unwritten") {
    TRY(hipMalloc(&other, 256));
    unwritten<<<1, 64>>>(other, own);
    TRY(hipMemcpy(results, own, 256, hipMemcpyDefault));
    return results[5];
  }
  if (what == "freed") {
    // As much as HIP asks for itself afterwards: for a queue, for signals.
    TRY(hipMalloc(&other, 1 << 20));
    TRY(hipFree(other));
    hipStream_t streams[4];
    for (auto &stream : streams) TRY(hipStreamCreate(&stream));
    store<<<1, 64, 0, streams[3]>>>(other, 7);
    TRY(hipDeviceSynchronize());
    return 4;
  }
  if (what == "unmapped") {
    void *pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap((char *)pages + 4096, 4096);
    hipError_t e = hipHostRegister(pages, size, 0);
    std::printf("registered: %s\n", hipGetErrorString(e));
    return e == hipSuccess ? 4 : 0;
  }
  if (what == "clock") {
    int kilohertz = 0;
    TRY(hipDeviceGetAttribute(&kilohertz, hipDeviceAttributeClockRate, 0));
    auto start = std::chrono::steady_clock::now();
    spin<<<1, 1>>>(200LL * kilohertz);
    TRY(hipDeviceSynchronize());
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    std::printf("a wait of 0.2 s took %.3f s\n", took.count());
    return took.count() >= 0.2 && took.count() < 10 ? 0 : 4;
  }
  return 9;
}
