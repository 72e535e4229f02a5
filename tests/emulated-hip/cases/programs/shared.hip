// Tiles in shared memory, a histogram, votes of a work-group.
#include "check.h"
#include <vector>
#define T 16
__global__ void tiled(const float *a, const float *b, float *c, int n) {
  __shared__ float x[T][T + 1], y[T][T];
  int r = blockIdx.y * T + threadIdx.y, q = blockIdx.x * T + threadIdx.x;
  float s = 0;
  for (int k = 0; k < n; k += T) {
    x[threadIdx.y][threadIdx.x] = r < n && k + threadIdx.x < n ? a[r * n + k + threadIdx.x] : 0;
    y[threadIdx.y][threadIdx.x] = q < n && k + threadIdx.y < n ? b[(k + threadIdx.y) * n + q] : 0;
    __syncthreads();
    for (int i = 0; i < T; i++) s += x[threadIdx.y][i] * y[i][threadIdx.x];
    __syncthreads();
  }
  if (r < n && q < n) c[r * n + q] = s;
}
__global__ void histogram(const unsigned char *in, unsigned *out, int n) {
  extern __shared__ unsigned bins[];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], bins[i]);
}
__global__ void votes(int *out) {
  int t = threadIdx.x;
  int c = __syncthreads_count(t % 3 == 0), a = __syncthreads_and(t < 200), o = __syncthreads_or(t == 77);
  if (t == 0) out[0] = c, out[1] = a, out[2] = o;
}
int main() {
  const int n = 75;
  std::vector<float> a(n * n), b(n * n), c(n * n), e(n * n, 0.f);
  for (int i = 0; i < n * n; i++) a[i] = (i * 7 % 13) - 6, b[i] = (i * 5 % 11) - 5;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) for (int k = 0; k < n; k++) e[i * n + j] += a[i * n + k] * b[k * n + j];
  float *da, *db, *dc;
  DONE(hipMalloc(&da, n * n * 4));
  DONE(hipMalloc(&db, n * n * 4));
  DONE(hipMalloc(&dc, n * n * 4));
  DONE(hipMemcpy(da, a.data(), n * n * 4, hipMemcpyHostToDevice));
  DONE(hipMemcpy(db, b.data(), n * n * 4, hipMemcpyHostToDevice));
  dim3 g((n + T - 1) / T, (n + T - 1) / T), blk(T, T);
  tiled<<<g, blk>>>(da, db, dc, n);
  DONE(hipGetLastError());
  DONE(hipMemcpy(c.data(), dc, n * n * 4, hipMemcpyDeviceToHost));
  RIGHT(c == e);
  const int m = 100000; std::vector<unsigned char> in(m); std::vector<unsigned> h(256), he(256, 0);
  for (int i = 0; i < m; i++) in[i] = (unsigned)i * 2654435761u >> 24, he[in[i]]++;
  unsigned char *di;
  unsigned *dh;
  DONE(hipMalloc(&di, m));
  DONE(hipMalloc(&dh, 1024));
  DONE(hipMemset(dh, 0, 1024));
  DONE(hipMemcpy(di, in.data(), m, hipMemcpyHostToDevice));
  histogram<<<20, 256, 1024>>>(di, dh, m); DONE(hipMemcpy(h.data(), dh, 1024, hipMemcpyDeviceToHost));
  RIGHT(h == he);
  int v[3]; votes<<<1, 256>>>((int *)dh); DONE(hipMemcpy(v, dh, 12, hipMemcpyDeviceToHost));
  RIGHT(v[0] == 86 && v[1] == 0 && v[2] == 1);
  return wrong;
}
