// Further functions of the runtime, and errors that programs expect.
#include "check.h"
#include <hip/hip_cooperative_groups.h>
#include <cstring>
#include <string>
#include <vector>
__device__ unsigned ticket; __device__ float partial[64];
__global__ void lastBlock(const float *x, float *sum, int n) {
  __shared__ bool last;
  __shared__ float s[128];
  float v = 0;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) v += x[i];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int d = 64; d; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d]; __syncthreads();
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = s[0]; __threadfence(); last = atomicInc(&ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float t = 0;
    for (unsigned b = 0; b < gridDim.x; b++) t += ((volatile float *)partial)[b];
    *sum = t;
  }
}
__global__ void sync(int *o) {
  int t = threadIdx.x;
  o[t] = __shfl_sync(~0ull, t * 2, 3) + __reduce_add_sync(~0ull, 1) + (int)__popcll(__ballot_sync(~0ull,
      t & 1)) + (int)__match_any_sync(~0ull, t / 4) % 1000;
}
__global__ void volume(int *p, size_t pitch, int w, int h, int d) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
      z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < w && y < h && z < d) ((int *)((char *)p + pitch * (z * h + y)))[x] = x + 100 * y + 10000 * z;
}
__global__ void clocks(long long *o) {
  o[0] = clock64();
  o[1] = wall_clock64();
  for (int i = 0; i < 100; i++) __builtin_amdgcn_s_sleep(1);
  o[2] = clock64();
  o[3] = wall_clock64();
}
__global__ __launch_bounds__(256, 2) void bounded(int *x) { x[threadIdx.x] += blockDim.x; }
template <int N> struct Big { int v[N]; };
__global__ void byValue(Big<200> b, int *o) { o[threadIdx.x] = b.v[threadIdx.x]; }
int main() {
  const int n = 10000;
  std::vector<float> x(n);
  double e = 0;
  for (int i = 0; i < n; i++) x[i] = i % 17 - 8, e += x[i];
  float *dx, *ds, s;
  DONE(hipMalloc(&dx, n * 4));
  DONE(hipMalloc(&ds, 4096));
  DONE(hipMemcpy(dx, x.data(), n * 4, hipMemcpyHostToDevice));
  for (int r = 0; r < 3; r++) lastBlock<<<40, 128>>>(dx, ds, n);
  DONE(hipMemcpy(&s, ds, 4, hipMemcpyDeviceToHost));
  RIGHT(s == (float)e);
  hipDeviceProp_t p;
  DONE(hipGetDeviceProperties(&p, 0));
  int w = p.warpSize;
  int o[64];
  sync<<<1, w>>>((int *)ds);
  DONE(hipMemcpy(o, ds, w * 4, hipMemcpyDeviceToHost));
  bool ok = true;
  for (int t = 0; t < w; t++) {
    unsigned long long m = 15ull << (t / 4 * 4); ok &= o[t] == 6 + w + w / 2 + (int)m % 1000;
  }
  RIGHT(ok);
  hipPitchedPtr pp;
  hipExtent ext = make_hipExtent(13 * 4, 7, 5);
  DONE(hipMalloc3D(&pp, ext));
  DONE(hipMemset3D(pp, 0xff, ext));
  volume<<<dim3(4, 2, 3), dim3(4, 4, 2)>>>((int *)pp.ptr, pp.pitch, 13, 7, 5);
  std::vector<int> v(13 * 7 * 5);
  hipMemcpy3DParms c{};
  c.srcPtr = pp;
  c.dstPtr = make_hipPitchedPtr(v.data(), 52, 13, 7);
  c.extent = ext;
  c.kind = hipMemcpyDeviceToHost;
  DONE(hipMemcpy3D(&c));
  ok = true;
  for (int z = 0; z < 5; z++)
    for (int y = 0; y < 7; y++)
      for (int i = 0; i < 13; i++) ok &= v[(z * 7 + y) * 13 + i] == i + 100 * y + 10000 * z;
  RIGHT(ok);
  long long t[4];
  clocks<<<1, 1>>>((long long *)ds);
  DONE(hipMemcpy(t, ds, 32, hipMemcpyDeviceToHost));
  RIGHT(t[2] > t[0] && t[3] >= t[1]);
  hipFuncAttributes fa;
  DONE(hipFuncGetAttributes(&fa, (const void *)bounded));
  RIGHT(fa.maxThreadsPerBlock == 256);
  int blocks;
  DONE(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, bounded, 256, 0));
  RIGHT(blocks > 0);
  int mg, bs;
  DONE(hipOccupancyMaxPotentialBlockSize(&mg, &bs, bounded, 0, 0));
  RIGHT(bs > 0);
  Big<200> b;
  for (int i = 0; i < 200; i++) b.v[i] = i * i;
  int r[200];
  byValue<<<1, 200>>>(b, (int *)ds);
  DONE(hipMemcpy(r, ds, 800, hipMemcpyDeviceToHost));
  RIGHT(!memcmp(r, b.v, 800));
  std::vector<int> host(1000, 5);
  DONE(hipHostRegister(host.data(), 4000, hipHostRegisterDefault));
  int *hd;
  DONE(hipHostGetDevicePointer((void **)&hd, host.data(), 0));
  bounded<<<1, 256>>>(hd);
  DONE(hipDeviceSynchronize());
  RIGHT(host[0] == 261 && host[255] == 261 && host[256] == 5);
  DONE(hipHostUnregister(host.data()));
  size_t fr, tot;
  DONE(hipMemGetInfo(&fr, &tot));
  RIGHT(fr > 0 && fr <= tot);
  bounded<<<1, 1025>>>((int *)ds);
  RIGHT(hipGetLastError() == hipErrorInvalidConfiguration);
  bounded<<<1, 300>>>((int *)ds);
  hipError_t le = hipGetLastError();
  RIGHT(le != hipSuccess);
  hipIpcMemHandle_t ih;
  RIGHT(hipIpcGetMemHandle(&ih, ds) != hipSuccess);
  (void)hipGetLastError();
  RIGHT(hipSetDevice(5) == hipErrorInvalidDevice);
  RIGHT(hipMemcpy(nullptr, ds, 4, hipMemcpyDeviceToHost) != hipSuccess);
  bounded<<<1, 16, 200000>>>((int *)ds);
  le = hipGetLastError();
  printf("too much LDS: %s\n", hipGetErrorString(le));
  RIGHT(hipDeviceSynchronize() == hipSuccess || le != hipSuccess);
  return wrong;
}
