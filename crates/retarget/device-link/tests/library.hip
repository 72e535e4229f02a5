#define DEVICE __attribute__((device, noinline))
// Needs every vector register of the default attributes, and scratch for the rest.
extern "C" DEVICE float lib_fn(const float *p, int n) {
  float a[200], s = 0;
  #pragma unroll
  for (int i = 0; i < 200; ++i) a[i] = p[i * n];
  #pragma unroll
  for (int i = 0; i < 200; ++i) s += a[i] * a[199 - i] + a[(i * 7) % 200] * (float)i;
  #pragma unroll
  for (int i = 0; i < 200; ++i) s = s * a[i] + a[(i * 13) % 200];
  return s;
}
#ifdef KERNEL // its descriptor states the mode of the functions
extern "C" __attribute__((global)) void k_library(float *p) { p[0] = lib_fn(p, 2); }
#endif
