// The mathematical functions: near the host's.
#include "check.h"
#include <cmath>
#include <string>
#include <vector>
#define FUNCTIONS(F) F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) F(asinh) F(atanh) F(exp) F(exp2) F(expm1) \
  F(log) F(log2) F(log10) F(log1p) F(sqrt) F(cbrt) F(erf) F(erfc) F(tgamma) F(floor) F(ceil) F(trunc) F(round) F(rint)
enum {
#define F(f) k_##f,
  FUNCTIONS(F)
#undef F
  COUNT
};
template <typename T> __global__ void all(const T *x, const T *y, T *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T a = x[i], b = y[i], *p = o + i * (COUNT + 8);
#define F(f) p[k_##f] = f(a);
  FUNCTIONS(F)
#undef F
  T s, c;
  if constexpr (sizeof(T) == 4) sincosf(a, &s, &c); else sincos(a, &s, &c);
  T *q = p + COUNT;
  q[0] = s, q[1] = c, q[2] = pow(fabs(a), b), q[3] = atan2(a, b), q[4] = hypot(a, b), q[5] = fmod(a, b), q[6] = ldexp(a, 3), q[7] = remainder(a, b);
}
template <typename T> static void judge_all(const char *type, double ulps) {
  const int n = 2000, row = COUNT + 8;
  std::vector<T> x(n), y(n), o(n * row);
  for (int i = 0; i < n; i++) x[i] = (T)((i - 1000) / 173. + 0.001), y[i] = (T)((i * 7 % 501 - 250) / 61. + 0.01);
  for (int i = 0; i < 200; i++) x[i] = (T)((i - 100) / 101.);
  T *dx, *dy, *dout;
  DONE(hipMalloc(&dx, n * sizeof(T)));
  DONE(hipMalloc(&dy, n * sizeof(T)));
  DONE(hipMalloc(&dout, o.size() * sizeof(T)));
  DONE(hipMemcpy(dx, x.data(), n * sizeof(T), hipMemcpyHostToDevice));
  DONE(hipMemcpy(dy, y.data(), n * sizeof(T), hipMemcpyHostToDevice));
  all<<<(n + 127) / 128, 128>>>(dx, dy, dout, n);
  DONE(hipMemcpy(o.data(), dout, o.size() * sizeof(T), hipMemcpyDeviceToHost));
  std::vector<std::string> names = {
#define F(f) #f,
    FUNCTIONS(F)
#undef F
    "sincos 0", "sincos 1", "pow", "atan2", "hypot", "fmod", "ldexp", "remainder"};
  for (int k = 0; k < row; k++) {
    double worst = 0;
    for (int i = 0; i < n; i++) {
      long double a = x[i], b = y[i], want = 0;
      switch (k) {
#define F(f) case k_##f: want = f##l(a); break;
        FUNCTIONS(F)
#undef F
        case COUNT: want = sinl(a); break;
        case COUNT + 1: want = cosl(a); break;
        case COUNT + 2: want = powl(fabsl(a), b); break;
        case COUNT + 3: want = atan2l(a, b); break;
        case COUNT + 4: want = hypotl(a, b); break;
        case COUNT + 5: want = fmodl(a, b); break;
        case COUNT + 6: want = a * 8; break;
        default: want = remainderl(a, b);
      }
      T got = o[i * row + k], near = (T)want;
      if (std::isnan(near) || std::isinf(near)) { if (!(std::isnan(got) && std::isnan(near)) && got != near) worst = 1e9; continue; }
      double step = std::fabs((double)(std::nextafter(near, (T)INFINITY) - near));
      double off = (double)fabsl((long double)got - want) / step;
      if (!(off <= worst)) worst = off;
    }
    judge(worst <= ulps, (std::string(type) + " " + names[k]).c_str(), (std::to_string(worst) + " steps").c_str());
  }
}
int main() {
  judge_all<float>("float", 16);
  judge_all<double>("double", 16);
  return wrong;
}
