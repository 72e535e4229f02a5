// Memory that kernels allocate, virtual functions, recursion, pointers to functions, printf.
#include "check.h"
struct Shape { __device__ virtual ~Shape() {} __device__ virtual int area() const = 0; };
struct Sq : Shape {
  int a; __device__ Sq(int a) : a(a) {} __device__ int area() const override { return a * a; }
};
struct Re : Shape {
  int a, b; __device__ Re(int a, int b) : a(a), b(b) {} __device__ int area() const override { return a * b; }
};
__device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__global__ void k(int *o) {
  int t = threadIdx.x;
  int *p = (int *)malloc(64 * (1 + t % 3));
  if (!p) { o[t] = -1; return; }
  for (int i = 0; i < 16; i++) p[i] = t + i;
  int s = 0;
  for (int i = 0; i < 16; i++) s += p[i];
  free(p);
  Shape *q = t & 1 ? (Shape *)new Sq(t) : (Shape *)new Re(t, 3);
  s += q->area();
  delete q;
  o[t] = s + fib(t % 10);
  if (t % 32 == 7) printf("thread %d of %d says %s %.3f %lld\n", t, blockDim.x, "hello", t * 0.5, 1ll << 40);
}
typedef int (*F)(int);
__device__ int tw(int x) { return 2 * x; }
__device__ int ng(int x) { return -x; }
__device__ F fs[] = {tw, ng};
__global__ void ptr(int *o) { o[threadIdx.x] = fs[threadIdx.x % 2](threadIdx.x); }
int main() {
  int *d, r[128];
  DONE(hipMalloc(&d, 512));
  k<<<1, 128>>>(d);
  DONE(hipDeviceSynchronize());
  DONE(hipMemcpy(r, d, 512, hipMemcpyDeviceToHost));
  bool ok = true;
  int f[10] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34};
  for (int t = 0; t < 128; t++) ok &= r[t] == 16 * t + 120 + (t & 1 ? t * t : t * 3) + f[t % 10];
  RIGHT(ok);
  ptr<<<1, 128>>>(d);
  DONE(hipMemcpy(r, d, 512, hipMemcpyDeviceToHost));
  ok = true;
  for (int t = 0; t < 128; t++) ok &= r[t] == (t % 2 ? -t : 2 * t);
  RIGHT(ok);
  return wrong;
}
