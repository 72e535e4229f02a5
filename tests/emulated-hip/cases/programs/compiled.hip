// Code that is compiled at run time: headers, names of templates, options, errors, variables of modules.
#include "check.h"
#include <hip/hiprtc.h>
#include <cstring>
#include <string>
#include <vector>
#define RTC(expression) judge((expression) == HIPRTC_SUCCESS, #expression, "fails")
static const char *source = R"(
#include "mine.h"
#include "deeper/more.h"
__device__ int offset = 5;
__constant__ float weights[4] = {1, 2, 3, 4};
template <typename T, int N> __global__ void add(T *out, const T *in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = twice(in[i]) + T(N) + T(MORE) + T(offset);
}
namespace inner { struct Point { float x, y; }; __global__ void move(Point *p, Point by) { p[threadIdx.x].x += by.x * weights[threadIdx.x & 3]; p[threadIdx.x].y -= by.y; } }
extern "C" __global__ void plain(int *o) { extern __shared__ int s[]; s[threadIdx.x] = DEFINED; __syncthreads(); o[threadIdx.x] = s[threadIdx.x ^ 1] + blockDim.x; }
)";
int main() {
  const char *headers[] = {"template <typename T> __device__ T twice(T x) { return x + x; }", "#define MORE 100\n"};
  const char *names[] = {"mine.h", "deeper/more.h"};
  hiprtcProgram program;
  RTC(hiprtcCreateProgram(&program, source, "source.cu", 2, headers, names));
  RTC(hiprtcAddNameExpression(program, "add<float, 3>"));
  RTC(hiprtcAddNameExpression(program, "add<long long, 4>"));
  RTC(hiprtcAddNameExpression(program, "inner::move"));
  RTC(hiprtcAddNameExpression(program, "&offset"));
  hipDeviceProp_t p;
  DONE(hipGetDeviceProperties(&p, 0));
  std::string arch = std::string("--gpu-architecture=") + p.gcnArchName;
  const char *options[] = {arch.c_str(), "-DDEFINED=42", "-std=c++17", "-O2"};
  hiprtcResult compiled = hiprtcCompileProgram(program, 4, options);
  size_t size;
  RTC(hiprtcGetProgramLogSize(program, &size));
  std::string log(size, 0);
  RTC(hiprtcGetProgramLog(program, &log[0]));
  judge(compiled == HIPRTC_SUCCESS, "compiles", log.c_str());
  const char *lowered[4];
  RTC(hiprtcGetLoweredName(program, "add<float, 3>", &lowered[0]));
  RTC(hiprtcGetLoweredName(program, "add<long long, 4>", &lowered[1]));
  RTC(hiprtcGetLoweredName(program, "inner::move", &lowered[2]));
  RTC(hiprtcGetLoweredName(program, "&offset", &lowered[3]));
  RIGHT(std::string(lowered[0]).rfind("_Z3add", 0) == 0 && std::string(lowered[0]) != lowered[1]);
  RTC(hiprtcGetCodeSize(program, &size));
  std::vector<char> code(size);
  RTC(hiprtcGetCode(program, code.data()));
  hipModule_t module;
  DONE(hipModuleLoadData(&module, code.data()));
  hipFunction_t f, g, m, plain;
  DONE(hipModuleGetFunction(&f, module, lowered[0]));
  DONE(hipModuleGetFunction(&g, module, lowered[1]));
  DONE(hipModuleGetFunction(&m, module, lowered[2]));
  DONE(hipModuleGetFunction(&plain, module, "plain"));
  const int n = 256;
  std::vector<float> a(n), r(n);
  for (int i = 0; i < n; i++) a[i] = i * 0.5f;
  void *in, *out;
  DONE(hipMalloc(&in, n * 8));
  DONE(hipMalloc(&out, n * 8));
  DONE(hipMemcpy(in, a.data(), n * 4, hipMemcpyHostToDevice));
  void *args[] = {&out, &in};
  DONE(hipModuleLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, 0, args, nullptr));
  DONE(hipMemcpy(r.data(), out, n * 4, hipMemcpyDeviceToHost));
  bool ok = true;
  for (int i = 0; i < n; i++) ok &= r[i] == i + 108;
  RIGHT(ok);
  hipDeviceptr_t offset;
  DONE(hipModuleGetGlobal(&offset, &size, module, lowered[3]));
  RIGHT(size == 4);
  int value = -1000;
  DONE(hipMemcpyHtoD(offset, &value, 4));
  std::vector<long long> la(n), lr(n);
  for (int i = 0; i < n; i++) la[i] = (1ll << 40) * i;
  DONE(hipMemcpy(in, la.data(), n * 8, hipMemcpyHostToDevice));
  DONE(hipModuleLaunchKernel(g, 4, 1, 1, 64, 1, 1, 0, 0, args, nullptr));
  DONE(hipMemcpy(lr.data(), out, n * 8, hipMemcpyDeviceToHost));
  ok = true;
  for (int i = 0; i < n; i++) ok &= lr[i] == (2ll << 40) * i + 104 - 1000;
  RIGHT(ok);
  struct { float x, y; } by = {1, 2}, points[64] = {};
  DONE(hipMemcpy(out, points, sizeof points, hipMemcpyHostToDevice));
  void *move_args[] = {&out, &by};
  DONE(hipModuleLaunchKernel(m, 1, 1, 1, 64, 1, 1, 0, 0, move_args, nullptr));
  DONE(hipMemcpy(points, out, sizeof points, hipMemcpyDeviceToHost));
  RIGHT(points[63].x == 4 && points[5].x == 2 && points[63].y == -2);
  int ints[32];
  void *plain_args[] = {&out};
  DONE(hipModuleLaunchKernel(plain, 1, 1, 1, 32, 1, 1, 128, 0, plain_args, nullptr));
  DONE(hipMemcpy(ints, out, 128, hipMemcpyDeviceToHost));
  RIGHT(ints[7] == 74);
  RIGHT(hipModuleGetFunction(&f, module, "absent") == hipErrorNotFound);
  RIGHT(hipModuleGetGlobal(&offset, &size, module, "absent") == hipErrorNotFound);
  DONE(hipModuleUnload(module));
  RTC(hiprtcDestroyProgram(&program));
  hiprtcProgram broken;
  RTC(hiprtcCreateProgram(&broken, "__global__ void k() { undefined_name++; }", "broken.cu", 0, nullptr, nullptr));
  RIGHT(hiprtcCompileProgram(broken, 1, options) == HIPRTC_ERROR_COMPILATION);
  RTC(hiprtcGetProgramLogSize(broken, &size));
  std::string errors(size, 0);
  RTC(hiprtcGetProgramLog(broken, &errors[0]));
  RIGHT(errors.find("undefined_name") != std::string::npos && errors.find("broken.cu") != std::string::npos);
  RIGHT(hipModuleLoadData(&module, "no code object at all, but some text") != hipSuccess);
  return wrong;
}
