// A kernel that is compiled when the program runs.
#include "check.h"
#include <hip/hiprtc.h>
#include <vector>

int main() {
  const char *text = "extern \"C\" __global__ void change(float *data, float by) { data[threadIdx.x] = data[threadIdx.x] * by + threadIdx.x; }";
  hiprtcProgram program;
  size_t size = 0;
  if (hiprtcCreateProgram(&program, text, "a.hip", 0, nullptr, nullptr) || hiprtcCompileProgram(program, 0, nullptr) ||
      hiprtcGetCodeSize(program, &size))
    return 10;
  std::vector<char> code(size);
  if (hiprtcGetCode(program, code.data())) return 11;
  hipModule_t module;
  hipFunction_t function;
  DONE(hipModuleLoadData(&module, code.data()));
  DONE(hipModuleGetFunction(&function, module, "change"));
  judge(hipModuleGetFunction(&function, module, "change") == hipSuccess, "known kernel", "");
  hipFunction_t other;
  judge(hipModuleGetFunction(&other, module, "unknown") == hipErrorNotFound, "unknown kernel", "found");
  float *data, by = 4, numbers[64];
  DONE(hipMalloc(&data, 256));
  for (int i = 0; i < 64; i++) numbers[i] = i;
  DONE(hipMemcpy(data, numbers, 256, hipMemcpyHostToDevice));
  void *arguments[] = {&data, &by};
  DONE(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  DONE(hipMemcpy(numbers, data, 256, hipMemcpyDeviceToHost));
  RIGHT(numbers[1] == 5 && numbers[63] == 315);
  DONE(hipModuleUnload(module));
  return wrong;
}
