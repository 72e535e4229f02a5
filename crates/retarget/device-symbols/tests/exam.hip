// Device code of HIP programs: assertions, abort, printf, shuffles, virtual and pure virtual calls, recursion.
#include <cassert>
#include <cstdio>
#include <hip/hip_runtime.h>

struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual float edge() const { return 1; }
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float x) : side(x) {}
  __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
  float radius;
  __device__ explicit Circle(float x) : radius(x) {}
  __device__ float area() const override { return radius * radius * 3; }
  __device__ float edge() const override { return radius * 6; }
};
__device__ __noinline__ float measure(const Shape *shape) { return shape->area() + shape->edge(); }
__device__ __noinline__ int checked(int x) {
  assert(x < 100);
  return x + 1;
}
__device__ __noinline__ int stops(int x) {
  if (x > 1000) abort();
  return checked(x) * 2;
}
__device__ __noinline__ int said(int x) {
  if (x == 7) printf("seven %d\n", x);
  return x * 3;
}
__device__ __noinline__ int summed(int x) {
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_down(x, distance);
  return __shfl(x, 0);
}
__device__ __noinline__ int again(int n) { return n < 2 ? n : again(n - 1) + again(n - 2); }

__global__ void asserting(int *p) { p[threadIdx.x] = stops(p[threadIdx.x]); }
__global__ void printing(int *p) { p[threadIdx.x] = said(p[threadIdx.x]); }
__global__ void shuffling(int *p) { p[threadIdx.x] = summed(p[threadIdx.x]); }
__global__ void recursive(int *p) { p[0] = again(p[1]); }
__global__ void shapes(float *p) {
  Square square(p[1]);
  Circle circle(p[2]);
  p[0] = measure(p[3] > 0 ? (const Shape *)&square : &circle);
}
__global__ void alone(int *p) {
  assert(p[1] != 3);
  p[0] = p[1];
}
