// Device functions of all kinds: leaves, chains, recursion, mutual recursion, pointers in a table, virtual calls.
#define DEVICE __attribute__((device, noinline))
DEVICE float leaf(float x) { return x * x + 1.0f; }
DEVICE float wide(const float *p, int n) {
  float a[24], s = 0;
  for (int i = 0; i < 24; ++i) a[i] = p[i * n];
  for (int i = 0; i < 24; ++i) s += a[i] * a[23 - i] + a[(i * 7) % 24];
  return leaf(s);
}
DEVICE int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
DEVICE int odd(int n);
DEVICE int even(int n) { return n == 0 ? 1 : odd(n - 1) + 2; }
DEVICE int odd(int n) { return n == 0 ? 0 : even(n - 1) + 3; }
DEVICE static float first(float x) { return x + 1; }
DEVICE static float second(float x) { return leaf(x) - 1; }
typedef float (*Shape)(float);
__attribute__((device)) Shape table[2] = {first, second};
struct Base { DEVICE virtual float area(float x) { return x; } };
struct Derived : Base { DEVICE float area(float x) override { return leaf(x); } };
DEVICE float any(Base *shape, float x) { return shape->area(x); }
#define KERNEL extern "C" __attribute__((global))
KERNEL void plain(float *p) { p[0] = leaf(p[1]); }
KERNEL void chain(float *p, int n) { p[0] = wide(p, n); }
KERNEL void recursive(int *p, int n) { p[0] = fib(n); p[1] = even(n); }
KERNEL void pointers(float *p, int n) { p[0] = table[n & 1](p[1]); }
KERNEL void objects(float *p, int n) {
  Base base; Derived derived;
  p[0] = any(n ? &base : &derived, p[1]);
}
DEVICE int tail(int n) { return fib(n * 3); }
KERNEL void tails(int *p, int n) { p[0] = tail(n); }
KERNEL void alone(float *p) { p[0] = p[1] + 1; }
