// C++ on the device: new and delete, virtual functions, recursion, lambdas, function pointers, templates.
#include "check.h"
#include <array>
#include <new>
#include <vector>
struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual double area() const = 0;
  __device__ virtual int corners() const { return 0; }
};
struct Box : Shape {
  double w, h;
  __device__ Box(double w, double h) : w(w), h(h) {}
  __device__ double area() const override { return w * h; }
  __device__ int corners() const override { return 4; }
};
struct Disc : Shape {
  double r;
  int *count;
  __device__ Disc(double r, int *count) : r(r), count(count) {}
  __device__ ~Disc() { atomicAdd(count, 1); }
  __device__ double area() const override { return 3 * r * r; }
};
__global__ void shapes(double *out, int *count) {
  int t = threadIdx.x;
  Shape *s = t % 2 ? (Shape *)new Box(t, 2) : new Disc(t, count);
  out[t] = s->area() + s->corners();
  delete s;
  double *list = new double[t + 1];
  for (int i = 0; i <= t; i++) list[i] = i;
  double sum = 0;
  for (int i = 0; i <= t; i++) sum += list[i];
  delete[] list;
  out[64 + t] = sum;
  alignas(Box) char place[sizeof(Box)];
  Box *b = new (place) Box(t, t);
  out[128 + t] = b->area();
}
__device__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
__device__ void sort(int *v, int lo, int hi) {
  if (lo >= hi) return;
  int p = v[(lo + hi) / 2], i = lo, j = hi;
  while (i <= j) {
    while (v[i] < p) i++;
    while (v[j] > p) j--;
    if (i <= j) { int x = v[i]; v[i++] = v[j], v[j--] = x; }
  }
  sort(v, lo, j), sort(v, i, hi);
}
__global__ void recursion(int *o, int *v) {
  o[threadIdx.x] = ackermann(2, threadIdx.x % 5);
  sort(v + threadIdx.x * 50, 0, 49);
}
__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int minus(int a, int b) { return a - b; }
typedef int (*Operation)(int, int);
__device__ Operation operations[] = {plus, times, minus};
template <typename F> __global__ void apply(F f, int *o) { o[threadIdx.x] = f(threadIdx.x); }
template <typename... T> __device__ constexpr auto sum(T... t) { return (t + ...); }
__global__ void misc(int *o, Operation *given) {
  int t = threadIdx.x;
  auto square = [=](int x) { return x * x + t; };
  std::array<int, 5> a = {1, 2, 3, 4, 5};
  int s = 0;
  for (int x : a) s += square(x);
  o[t] = s + operations[t % 3](t, 7) + sum(1, 2, 3, t);
  if (given) o[t] += (*given)(100, t);
  union { float f; unsigned u; } u;
  u.f = t;
  o[t] ^= u.u;
  switch (t % 7) {
    case 0: o[t] += 1; break;
    case 3: o[t] -= 5; [[fallthrough]];
    case 4: o[t] *= 3; break;
    case 6: goto end;
    default: o[t] = ~o[t];
  }
  o[t] += 1000;
end:
  o[t] += 1;
}
static int host_ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? host_ackermann(m - 1, 1) : host_ackermann(m - 1, host_ackermann(m, n - 1)); }
int main() {
  double *d, r[192];
  int *count, c;
  DONE(hipMalloc(&d, sizeof r));
  DONE(hipMalloc(&count, 4096));
  DONE(hipMemset(count, 0, 4096));
  shapes<<<1, 64>>>(d, count);
  DONE(hipMemcpy(r, d, sizeof r, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(&c, count, 4, hipMemcpyDeviceToHost));
  bool ok = true, lists = true, placed = true;
  for (int t = 0; t < 64; t++) {
    ok &= r[t] == (t % 2 ? t * 2. + 4 : 3. * t * t);
    lists &= r[64 + t] == t * (t + 1) / 2;
    placed &= r[128 + t] == t * t;
  }
  RIGHT(ok && c == 32);
  RIGHT(lists);
  RIGHT(placed);
  std::vector<int> v(64 * 50), o(64);
  for (size_t i = 0; i < v.size(); i++) v[i] = i * 7919 % 1009;
  int *dv;
  DONE(hipMalloc(&dv, v.size() * 4));
  DONE(hipMemcpy(dv, v.data(), v.size() * 4, hipMemcpyHostToDevice));
  recursion<<<1, 64>>>(count, dv);
  DONE(hipMemcpy(o.data(), count, 256, hipMemcpyDeviceToHost));
  DONE(hipMemcpy(v.data(), dv, v.size() * 4, hipMemcpyDeviceToHost));
  ok = lists = true;
  for (int t = 0; t < 64; t++) {
    ok &= o[t] == host_ackermann(2, t % 5);
    for (int i = 1; i < 50; i++) lists &= v[t * 50 + i - 1] <= v[t * 50 + i];
  }
  RIGHT(ok);
  RIGHT(lists);
  int by = 9;
  apply<<<1, 64>>>([=] __device__(int x) { return x * by - 1; }, count);
  DONE(hipMemcpy(o.data(), count, 256, hipMemcpyDeviceToHost));
  RIGHT(o[0] == -1 && o[63] == 566);
  void *table;
  DONE(hipGetSymbolAddress(&table, HIP_SYMBOL(operations)));
  misc<<<1, 64>>>(count, (Operation *)table + 2);
  DONE(hipMemcpy(o.data(), count, 256, hipMemcpyDeviceToHost));
  ok = true;
  for (int t = 0; t < 64; t++) {
    int s = 55 + 5 * t + (t % 3 == 0 ? t + 7 : t % 3 == 1 ? t * 7 : t - 7) + 6 + t + 100 - t;
    union { float f; unsigned u; } u;
    u.f = t;
    s ^= u.u;
    if (t % 7 == 0) s += 1;
    else if (t % 7 == 3) s = (s - 5) * 3;
    else if (t % 7 == 4) s *= 3;
    else if (t % 7 != 6) s = ~s;
    if (t % 7 != 6) s += 1000;
    ok &= o[t] == s + 1;
  }
  RIGHT(ok);
  return wrong;
}
