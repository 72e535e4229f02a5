// Copies of every form, pinned and mapped memory, what pointers are.
#include "check.h"
#include <cstring>
#include <vector>
__global__ void raise(int *x, int n, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += by;
}
template <typename T> static bool all(const std::vector<T> &v, T x) {
  for (T y : v) if (y != x) return false;
  return true;
}
int main() {
  const int w = 37, h = 11, d = 5, n = w * h * d;
  std::vector<int> a(n), b(n);
  for (int i = 0; i < n; i++) a[i] = i * 7;
  char *rows;
  size_t pitch;
  DONE(hipMallocPitch((void **)&rows, &pitch, w * 4, h));
  RIGHT(pitch >= w * 4 && pitch % 4 == 0);
  DONE(hipMemset2D(rows, pitch, 0x11, w * 4, h));
  DONE(hipMemcpy2D(b.data(), w * 4, rows, pitch, w * 4, h, hipMemcpyDeviceToHost));
  RIGHT(all(std::vector<int>(b.begin(), b.begin() + w * h), 0x11111111));
  hipStream_t s;
  DONE(hipStreamCreate(&s));
  DONE(hipMemcpy2DAsync(rows, pitch, a.data(), w * 4, w * 4, h, hipMemcpyHostToDevice, s));
  DONE(hipMemset2DAsync(rows + pitch * 3 + 8, pitch, 0, 12, 2, s));
  DONE(hipStreamSynchronize(s));
  DONE(hipMemcpy2D(b.data(), w * 4, rows, pitch, w * 4, h, hipMemcpyDeviceToHost));
  bool ok = true;
  for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) {
    bool cleared = (y == 3 || y == 4) && x >= 2 && x < 5;
    ok &= b[y * w + x] == (cleared ? 0 : a[y * w + x]);
  }
  RIGHT(ok);
  // From one pitch to another on the device, then linear.
  char *other;
  size_t pitch2;
  DONE(hipMallocPitch((void **)&other, &pitch2, 4096 + w * 4, h));
  DONE(hipMemcpy2D(other + 4096, pitch2, rows, pitch, w * 4, h, hipMemcpyDeviceToDevice));
  hip_Memcpy2D p{};
  p.srcMemoryType = hipMemoryTypeDevice, p.srcDevice = other, p.srcPitch = pitch2, p.srcXInBytes = 4096, p.srcY = 2;
  p.dstMemoryType = hipMemoryTypeHost, p.dstHost = b.data(), p.dstPitch = w * 4;
  p.WidthInBytes = w * 4, p.Height = 1;
  DONE(hipMemcpyParam2D(&p));
  RIGHT(!memcmp(b.data(), &a[2 * w], w * 4));
  hipPitchedPtr volume;
  hipExtent extent = make_hipExtent(w * 4, h, d);
  DONE(hipMalloc3D(&volume, extent));
  hipMemcpy3DParms c{};
  c.srcPtr = make_hipPitchedPtr(a.data(), w * 4, w, h), c.dstPtr = volume, c.extent = extent;
  c.kind = hipMemcpyHostToDevice;
  DONE(hipMemcpy3D(&c));
  hipMemcpy3DParms back{};
  back.srcPtr = volume, back.dstPtr = make_hipPitchedPtr(b.data(), w * 4, w, h);
  back.srcPos = make_hipPos(8, 1, 1), back.extent = make_hipExtent(20, 3, 2), back.kind = hipMemcpyDeviceToHost;
  std::fill(b.begin(), b.end(), -1);
  DONE(hipMemcpy3DAsync(&back, s));
  DONE(hipStreamSynchronize(s));
  ok = true;
  for (int z = 0; z < d; z++) for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) {
    bool in = x < 5 && y < 3 && z < 2;
    ok &= b[(z * h + y) * w + x] == (in ? a[((z + 1) * h + y + 1) * w + x + 2] : -1);
  }
  RIGHT(ok);
  int *dev, *dev2;
  DONE(hipMalloc(&dev, n * 4));
  DONE(hipMalloc(&dev2, n * 4));
  DONE(hipMemcpyHtoD((hipDeviceptr_t)dev, a.data(), n * 4));
  DONE(hipMemcpyDtoD((hipDeviceptr_t)dev2, (hipDeviceptr_t)dev, n * 4));
  DONE(hipMemcpyPeer(dev, 0, dev2 + 1, 0, (n - 1) * 4));
  DONE(hipMemcpyDtoH(b.data(), (hipDeviceptr_t)dev, n * 4));
  RIGHT(!memcmp(b.data(), &a[1], (n - 1) * 4));
  DONE(hipMemcpyWithStream(b.data(), dev2, n * 4, hipMemcpyDeviceToHost, s));
  RIGHT(a == b);
  DONE(hipMemsetD16((hipDeviceptr_t)dev, 0x1234, n * 2));
  DONE(hipMemsetD8Async((hipDeviceptr_t)((char *)dev + 3), 0x56, 7, s));
  DONE(hipDeviceSynchronize());
  DONE(hipMemcpy(b.data(), dev, n * 4, hipMemcpyDeviceToHost));
  RIGHT(b[0] == 0x56341234 && b[1] == 0x56565656 && b[2] == 0x12345656 && b[3] == 0x12341234);
  // Large copies, not aligned.
  const size_t big = (9 << 20) + 13;
  std::vector<char> large(big), result(big);
  for (size_t i = 0; i < big; i++) large[i] = i * 31 >> 3;
  char *space;
  DONE(hipMalloc(&space, big + 64));
  DONE(hipMemcpy(space + 5, large.data(), big, hipMemcpyHostToDevice));
  DONE(hipMemcpyAsync(result.data(), space + 5, big, hipMemcpyDeviceToHost, s));
  DONE(hipStreamSynchronize(s));
  RIGHT(large == result);
  // Overlap is not promised; neighbours are.
  DONE(hipMemcpy(space, space + big / 2, big / 2 - 64, hipMemcpyDeviceToDevice));
  DONE(hipMemcpy(result.data(), space, 1000, hipMemcpyDeviceToHost));
  RIGHT(!memcmp(result.data(), &large[big / 2 - 5], 1000));
  int *pinned, *mapped, *seen;
  DONE(hipHostMalloc(&pinned, n * 4, hipHostMallocPortable));
  DONE(hipHostMalloc(&mapped, n * 4, hipHostMallocMapped));
  DONE(hipHostGetDevicePointer((void **)&seen, mapped, 0));
  for (int i = 0; i < n; i++) mapped[i] = i, pinned[i] = -i;
  raise<<<(n + 63) / 64, 64, 0, s>>>(seen, n, 3);
  raise<<<(n + 63) / 64, 64, 0, s>>>(pinned, n, 3);
  DONE(hipStreamSynchronize(s));
  ok = true;
  for (int i = 0; i < n; i++) ok &= mapped[i] == i + 3 && pinned[i] == 3 - i;
  RIGHT(ok);
  unsigned flags;
  DONE(hipHostGetFlags(&flags, mapped));
  RIGHT(flags & hipHostMallocMapped);
  hipPointerAttribute_t at;
  DONE(hipPointerGetAttributes(&at, dev + 5));
  RIGHT(at.type == hipMemoryTypeDevice && at.device == 0 && at.devicePointer == dev + 5);
  DONE(hipPointerGetAttributes(&at, pinned));
  RIGHT(at.type == hipMemoryTypeHost && at.hostPointer == pinned);
  hipDeviceptr_t base;
  size_t size;
  DONE(hipMemGetAddressRange(&base, &size, (hipDeviceptr_t)(dev + 5)));
  RIGHT(base == (hipDeviceptr_t)dev && size == n * 4);
  DONE(hipFree(dev));
  RIGHT(hipMemcpy(b.data(), nullptr, 4, hipMemcpyDeviceToHost) == hipErrorInvalidValue);
  RIGHT(hipMemcpy2D(b.data(), 8, rows, pitch, w * 4, h, hipMemcpyDeviceToHost) == hipErrorInvalidPitchValue);
  hipArray_t array;
  hipChannelFormatDesc format = hipCreateChannelDesc<float>();
  hipError_t refused = hipMallocArray(&array, &format, 64, 64, 0);
  std::printf("arrays: %s\n", hipGetErrorName(refused));
  return wrong;
}
