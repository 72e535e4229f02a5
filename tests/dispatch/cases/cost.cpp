// Nanoseconds of a call: properties, a load of code for the device, a launch.
#include <chrono>
#include <cstdio>
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>
#include <vector>

template <class Call> static double nanoseconds(int count, Call call) {
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; i++) call();
  std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  return time.count() / count;
}

int main() {
  hiprtcProgram program;
  size_t size;
  const char *text = "extern \"C\" __global__ void nothing() {}";
  if (hiprtcCreateProgram(&program, text, "a.hip", 0, nullptr, nullptr) || hiprtcCompileProgram(program, 0, nullptr)) return 1;
  if (hiprtcGetCodeSize(program, &size)) return 2;
  std::vector<char> code(size);
  hipModule_t module;
  hipFunction_t function;
  if (hiprtcGetCode(program, code.data()) || hipModuleLoadData(&module, code.data())) return 3;
  if (hipModuleGetFunction(&function, module, "nothing")) return 4;
  hipDeviceProp_t properties;
  double ask = nanoseconds(2000, [&] { (void)hipGetDeviceProperties(&properties, 0); });
  double load = nanoseconds(200, [&] {
    hipModule_t again;
    if (!hipModuleLoadData(&again, code.data())) (void)hipModuleUnload(again);
  });
  double launch = nanoseconds(5000, [&] {
    (void)hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr);
  });
  std::printf("properties %.0f ns, load and unload %.0f ns, launch %.0f ns\n", ask, load, launch);
  return hipDeviceSynchronize();
}
