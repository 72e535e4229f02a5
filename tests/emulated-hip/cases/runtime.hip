// Parts of the HIP runtime, each with results that only execution gives.
#include "check.h"
#include <cstring>
#include <vector>

__device__ int number = 7;
__constant__ float table[4] = {1, 2, 3, 4};
__managed__ int managed = 5;

__global__ void add(const float *a, const float *b, float *c, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
__global__ void scale(float *p, float by, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= by;
}
__global__ void sums(const int *in, int *out) { // of each work-group, through LDS
  __shared__ int part[256];
  part[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (!threadIdx.x) out[blockIdx.x] = part[0];
}
__global__ void reverse(int *data) {
  extern __shared__ int dynamic[];
  dynamic[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x];
}
__global__ void scratch(int *data, int n) {
  volatile int local[100];
  for (int i = 0; i < n; i++) local[i] = data[i] * (int)threadIdx.x;
  int sum = 0;
  for (int i = n; i-- > 0;) sum += local[i];
  data[n + threadIdx.x] = sum;
}
__global__ void histogram(const unsigned char *in, unsigned *counts, unsigned n) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(counts + in[i], 1u);
}
__global__ void variables(int *out) { *out = number * 1000 + (int)table[2] * 100 + managed++; }
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__global__ void pointers(int *out) {
  int (*functions[2])(int) = {twice, square};
  out[threadIdx.x] = functions[threadIdx.x & 1](threadIdx.x);
}

static std::vector<float> read(const float *from, size_t n) {
  std::vector<float> all(n);
  DONE(hipMemcpy(all.data(), from, n * sizeof(float), hipMemcpyDeviceToHost));
  return all;
}

static void vectors() {
  const size_t n = 100000;
  std::vector<float> a(n), b(n);
  for (size_t i = 0; i < n; i++) a[i] = i, b[i] = 0.5f * i;
  float *da, *db, *dc;
  DONE(hipMalloc(&da, n * 4)); DONE(hipMalloc(&db, n * 4)); DONE(hipMalloc(&dc, n * 4));
  DONE(hipMemcpy(da, a.data(), n * 4, hipMemcpyHostToDevice));
  DONE(hipMemcpy(db, b.data(), n * 4, hipMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  std::vector<float> c = read(dc, n);
  size_t equal = 0;
  for (size_t i = 0; i < n; i++) equal += c[i] == a[i] + b[i];
  RIGHT(equal == n);
  DONE(hipFree(da)); DONE(hipFree(db)); DONE(hipFree(dc));
}

static void copies() {
  const size_t n = 1 << 16;
  std::vector<unsigned> h(n), g(n);
  for (size_t i = 0; i < n; i++) h[i] = i * 2654435761u;
  unsigned *d, *e;
  DONE(hipMalloc(&d, n * 4)); DONE(hipMalloc(&e, n * 4));
  DONE(hipMemcpy(d, h.data(), n * 4, hipMemcpyHostToDevice));
  DONE(hipMemcpy(e, d, n * 4, hipMemcpyDeviceToDevice));
  DONE(hipMemcpy(g.data(), e, n * 4, hipMemcpyDeviceToHost));
  RIGHT(g == h);
  DONE(hipMemcpy(g.data(), e, 4000, hipMemcpyDeviceToHost)); // the short way, by staging memory
  RIGHT(!std::memcmp(g.data(), h.data(), 4000));
  DONE(hipMemset(d, 0, n * 4)); DONE(hipMemset(d, 0x11, 4097));
  DONE(hipMemcpy(g.data(), d, n * 4, hipMemcpyDeviceToHost));
  RIGHT(g[0] == 0x11111111 && g[1023] == 0x11111111 && g[1024] == 0x11 && g[1025] == 0 && g[n - 1] == 0);
  DONE(hipMemcpy2D(d, 1024, h.data(), 512, 256, 16, hipMemcpyHostToDevice));
  DONE(hipMemcpy(g.data(), d, 16384, hipMemcpyDeviceToHost));
  RIGHT(!std::memcmp(&g[256], &h[128], 256) && !std::memcmp(&g[15 * 256], &h[15 * 128], 256));
  void *rows; size_t pitch;
  DONE(hipMallocPitch(&rows, &pitch, 100, 16));
  RIGHT(pitch >= 100 && pitch % 256 == 0);
  DONE(hipMemcpy2D(rows, pitch, h.data(), 100, 100, 16, hipMemcpyHostToDevice));
  DONE(hipMemcpy2D(g.data(), 100, rows, pitch, 100, 16, hipMemcpyDeviceToHost));
  RIGHT(!std::memcmp(g.data(), h.data(), 1600));
  DONE(hipFree(rows));
  DONE(hipMemcpy(g.data(), d, 16384, hipMemcpyDeviceToHost));
  DONE(hipMemset2D(d, 1024, 7, 100, 4));
  DONE(hipMemcpy(g.data(), d, 4096, hipMemcpyDeviceToHost));
  RIGHT(g[768] == 0x07070707 && g[768 + 24] == 0x07070707 && g[768 + 25] == h[15 * 0 + 3 * 128 + 25]);
  unsigned *pinned, *device;
  DONE(hipHostMalloc(&pinned, n * 4));
  std::memcpy(pinned, h.data(), n * 4);
  DONE(hipMemcpyAsync(d, pinned, n * 4, hipMemcpyHostToDevice, 0)); DONE(hipStreamSynchronize(0));
  DONE(hipMemcpy(g.data(), d, n * 4, hipMemcpyDeviceToHost));
  RIGHT(g == h);
  DONE(hipHostGetDevicePointer((void **)&device, pinned, 0));
  RIGHT(device == pinned);
  DONE(hipHostFree(pinned));
  DONE(hipHostRegister(h.data(), n * 4, 0));
  DONE(hipMemcpy(g.data(), d, n * 4, hipMemcpyDeviceToHost));
  DONE(hipHostUnregister(h.data()));
  RIGHT(g == h);
  hipPointerAttribute_t attributes;
  DONE(hipPointerGetAttributes(&attributes, d));
  RIGHT(attributes.type == hipMemoryTypeDevice);
  size_t free_bytes, total;
  DONE(hipMemGetInfo(&free_bytes, &total));
  RIGHT(free_bytes > 0 && free_bytes < total);
  DONE(hipFree(d)); DONE(hipFree(e));
}

static void memory() {
  float *m;
  DONE(hipMallocManaged(&m, 4096));
  m[0] = 3;
  scale<<<1, 32>>>(m, 2, 1);
  DONE(hipDeviceSynchronize());
  RIGHT(m[0] == 6);
  DONE(hipFree(m));
  DONE(hipMallocAsync((void **)&m, 4096, 0));
  DONE(hipMemsetAsync(m, 0, 4096, 0));
  std::vector<float> zeros = read(m, 1024);
  RIGHT(zeros[0] == 0 && zeros[1023] == 0);
  DONE(hipFreeAsync(m, 0));
  DONE(hipDeviceSynchronize());
}

static void streams() {
  const unsigned n = 4096;
  std::vector<float> twos(n, 2);
  float *d;
  hipStream_t stream[3];
  hipEvent_t event[2];
  static int called = 0;
  DONE(hipMalloc(&d, n * 4));
  for (hipStream_t &s : stream) DONE(hipStreamCreate(&s));
  for (hipEvent_t &e : event) DONE(hipEventCreate(&e));
  DONE(hipMemcpy(d, twos.data(), n * 4, hipMemcpyHostToDevice));
  DONE(hipEventRecord(event[0], stream[0]));
  scale<<<n / 256, 256, 0, stream[0]>>>(d, 3, n);
  DONE(hipEventRecord(event[1], stream[0]));
  DONE(hipStreamWaitEvent(stream[1], event[1], 0));
  scale<<<n / 256, 256, 0, stream[1]>>>(d, 5, n);
  DONE(hipLaunchHostFunc(stream[1], [](void *data) { ++*(int *)data; }, &called));
  DONE(hipStreamSynchronize(stream[1]));
  RIGHT(called == 1);
  float elapsed = -1;
  DONE(hipEventElapsedTime(&elapsed, event[0], event[1]));
  RIGHT(elapsed >= 0);
  RIGHT(read(d, n) == std::vector<float>(n, 30));
  DONE(hipStreamQuery(stream[2]));
  for (hipEvent_t &e : event) DONE(hipEventDestroy(e));
  for (hipStream_t &s : stream) DONE(hipStreamDestroy(s));
  DONE(hipFree(d));
}

static void graphs() {
  float *d, one = 1;
  hipStream_t stream;
  hipGraph_t graph;
  hipGraphExec_t exec;
  DONE(hipMalloc(&d, 256));
  DONE(hipMemcpy(d, &one, 4, hipMemcpyHostToDevice));
  DONE(hipStreamCreate(&stream));
  DONE(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  scale<<<1, 64, 0, stream>>>(d, 2, 1);
  scale<<<1, 64, 0, stream>>>(d, 3, 1);
  DONE(hipStreamEndCapture(stream, &graph));
  DONE(hipGraphInstantiate(&exec, graph, 0, 0, 0));
  for (int turn = 0; turn < 3; turn++) DONE(hipGraphLaunch(exec, stream));
  DONE(hipStreamSynchronize(stream));
  RIGHT(read(d, 1)[0] == 216);
  DONE(hipGraphExecDestroy(exec)); DONE(hipGraphDestroy(graph)); DONE(hipStreamDestroy(stream)); DONE(hipFree(d));
}

static void symbols() {
  int value = 0, *d;
  float constants[4];
  DONE(hipMemcpyFromSymbol(&value, HIP_SYMBOL(number), 4));
  RIGHT(value == 7);
  value = 9;
  DONE(hipMemcpyToSymbol(HIP_SYMBOL(number), &value, 4));
  DONE(hipMemcpyFromSymbol(constants, HIP_SYMBOL(table), 16));
  RIGHT(constants[3] == 4);
  DONE(hipMalloc(&d, 4));
  managed = 6;
  variables<<<1, 1>>>(d);
  DONE(hipMemcpy(&value, d, 4, hipMemcpyDeviceToHost));
  RIGHT(value == 9306 && managed == 7);
  hipFuncAttributes attributes;
  DONE(hipFuncGetAttributes(&attributes, (const void *)scratch));
  RIGHT(attributes.localSizeBytes >= 400 && attributes.numRegs > 0);
  int blocks = 0;
  DONE(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 256, 0));
  RIGHT(blocks > 0);
  DONE(hipFree(d));
}

static void groups() {
  const int count = 40;
  std::vector<int> in(256 * count), out(count), expected(count);
  for (int i = 0; i < 256 * count; i++) in[i] = i * 7 % 1000, expected[i / 256] += in[i];
  int *d, *e;
  DONE(hipMalloc(&d, in.size() * 4)); DONE(hipMalloc(&e, count * 4));
  DONE(hipMemcpy(d, in.data(), in.size() * 4, hipMemcpyHostToDevice));
  sums<<<count, 256>>>(d, e);
  DONE(hipMemcpy(out.data(), e, count * 4, hipMemcpyDeviceToHost));
  RIGHT(out == expected);
  reverse<<<1, 256, 1024>>>(d);
  std::vector<int> back(256);
  DONE(hipMemcpy(back.data(), d, 1024, hipMemcpyDeviceToHost));
  RIGHT(back[0] == in[255] && back[255] == in[0] && back[100] == in[155]);
  int numbers[8 + 64] = {1, 2, 3, 4, 5, 6, 7, 8};
  DONE(hipMemcpy(d, numbers, sizeof numbers, hipMemcpyHostToDevice));
  scratch<<<1, 64>>>(d, 8);
  DONE(hipMemcpy(numbers, d, sizeof numbers, hipMemcpyDeviceToHost));
  RIGHT(numbers[8] == 0 && numbers[8 + 1] == 36 && numbers[8 + 63] == 36 * 63);
  pointers<<<1, 64>>>(d);
  DONE(hipMemcpy(numbers, d, 256, hipMemcpyDeviceToHost));
  RIGHT(numbers[4] == 8 && numbers[5] == 25 && numbers[63] == 63 * 63);
  DONE(hipFree(d)); DONE(hipFree(e));
}

static void atomics() {
  std::vector<unsigned char> bytes(50000);
  std::vector<unsigned> counts(256), expected(256);
  for (size_t i = 0; i < bytes.size(); i++) bytes[i] = i * i >> 4, expected[bytes[i]]++;
  unsigned char *d;
  unsigned *e;
  DONE(hipMalloc(&d, bytes.size())); DONE(hipMalloc(&e, 1024));
  DONE(hipMemcpy(d, bytes.data(), bytes.size(), hipMemcpyHostToDevice));
  DONE(hipMemset(e, 0, 1024));
  histogram<<<8, 128>>>(d, e, bytes.size());
  DONE(hipMemcpy(counts.data(), e, 1024, hipMemcpyDeviceToHost));
  RIGHT(counts == expected);
  DONE(hipFree(d)); DONE(hipFree(e));
}

static void cooperative() {
  float *d, by = 2, one = 1;
  unsigned n = 4;
  DONE(hipMalloc(&d, 256));
  DONE(hipMemcpy(d, &one, 4, hipMemcpyHostToDevice));
  void *arguments[] = {&d, &by, &n};
  DONE(hipLaunchCooperativeKernel((const void *)scale, dim3(4), dim3(64), arguments, 0, 0));
  DONE(hipDeviceSynchronize());
  RIGHT(read(d, 1)[0] == 2);
  DONE(hipFree(d));
}

int main(int count, char **names) {
  const struct { const char *name; void (*part)(); } parts[] = {
      {"vectors", vectors}, {"copies", copies}, {"memory", memory},   {"streams", streams},         {"graphs", graphs},
      {"symbols", symbols}, {"groups", groups}, {"atomics", atomics}, {"cooperative", cooperative}};
  for (auto &part : parts) {
    bool is_meant = count < 2;
    for (int i = 1; i < count; i++) is_meant |= !std::strcmp(names[i], part.name);
    if (is_meant) part.part();
  }
  return wrong;
}
