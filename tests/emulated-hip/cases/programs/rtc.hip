// Kernels that are compiled while the program runs.
#include "check.h"
#include <hip/hiprtc.h>
#include <string>
#include <vector>
static const char *src = "template<typename T, int N> __global__ void scale(T *x, T f) { int i = blockIdx.x * blockDim.x + threadIdx.x; x[i] = x[i] * f + N; }\nextern \"C\" __global__ void plain(int *x) { x[threadIdx.x] ^= 0x55; }\n__constant__ int c = 3;";
int main() {
  hiprtcProgram p;
  RIGHT(!hiprtcCreateProgram(&p, src, "k.hip", 0, nullptr, nullptr));
  RIGHT(!hiprtcAddNameExpression(p, "scale<float, 4>"));
  hipDeviceProp_t pr;
  DONE(hipGetDeviceProperties(&pr, 0));
  std::string arch = std::string("--offload-arch=") + pr.gcnArchName;
  const char *opt[] = {arch.c_str(), "-O3"};
  hiprtcResult c = hiprtcCompileProgram(p, 2, opt);
  size_t ls;
  hiprtcGetProgramLogSize(p, &ls);
  std::string log(ls, 0);
  hiprtcGetProgramLog(p, &log[0]);
  judge(!c, "compiled", log.c_str());
  const char *name;
  RIGHT(!hiprtcGetLoweredName(p, "scale<float, 4>", &name));
  size_t n;
  RIGHT(!hiprtcGetCodeSize(p, &n));
  std::vector<char> code(n);
  RIGHT(!hiprtcGetCode(p, code.data()));
  hipModule_t m;
  hipFunction_t f, g;
  DONE(hipModuleLoadData(&m, code.data()));
  DONE(hipModuleGetFunction(&f, m, name));
  DONE(hipModuleGetFunction(&g, m, "plain"));
  float *d, h[64];
  for (int i = 0; i < 64; i++) h[i] = i;
  DONE(hipMalloc(&d, 256));
  DONE(hipMemcpy(d, h, 256, hipMemcpyHostToDevice));
  float k = 2.5f;
  void *a[] = {&d, &k};
  DONE(hipModuleLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, 0, a, nullptr));
  DONE(hipMemcpy(h, d, 256, hipMemcpyDeviceToHost));
  bool ok = true;
  for (int i = 0; i < 64; i++) ok &= h[i] == i * 2.5f + 4;
  RIGHT(ok);
  void *b[] = {&d};
  DONE(hipModuleLaunchKernel(g, 1, 1, 1, 64, 1, 1, 0, 0, b, nullptr));
  int r[64];
  DONE(hipMemcpy(r, d, 256, hipMemcpyDeviceToHost));
  ok = true;
  for (int i = 0; i < 64; i++) {
    float x = i * 2.5f + 4;
    int y;
    __builtin_memcpy(&y, &x, 4);
    ok &= r[i] == (y ^ 0x55);
  }
  RIGHT(ok);
  hipFunction_t none;
  RIGHT(hipModuleGetFunction(&none, m, "nothing") == hipErrorNotFound);
  DONE(hipModuleUnload(m));
  return wrong;
}
