// Eight threads on two kinds of devices ask for names, and load and launch two kernels again and again.
#include <atomic>
#include <cstring>
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>
#include <string>
#include <thread>
#include <vector>

static std::vector<char> compiled(const char *text) {
  hiprtcProgram program;
  const char *options[] = {"--offload-arch=gfx1030"};
  size_t size = 0;
  if (hiprtcCreateProgram(&program, text, "a.hip", 0, nullptr, nullptr) || hiprtcCompileProgram(program, 1, options) ||
      hiprtcGetCodeSize(program, &size))
    return {};
  std::vector<char> code(size);
  return hiprtcGetCode(program, code.data()) ? std::vector<char>() : code;
}

static int work(int number, const std::vector<char> &code) {
  hipDeviceProp_t properties;
  float *data;
  void *arguments[] = {&data};
  if (hipSetDevice(number % 2) || hipMalloc(&data, 256)) return 1;
  for (int turn = 0; turn < 20; turn++) {
    hipModule_t module;
    hipFunction_t function;
    if (hipGetDeviceProperties(&properties, number % 2) || std::strcmp(properties.gcnArchName, "gfx1030")) return 2;
    if (hipModuleLoadData(&module, code.data()) || hipModuleGetFunction(&function, module, "change")) return 3;
    if (hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr)) return 4;
    if (hipDeviceSynchronize() || hipModuleUnload(module)) return 5;
  }
  return 0;
}

int main() {
  const char *texts[] = {"extern \"C\" __global__ void change(float *data) { data[threadIdx.x] *= 2; }",
                         "extern \"C\" __global__ void change(float *data) { data[threadIdx.x] += 3; }"};
  std::vector<char> codes[] = {compiled(texts[0]), compiled(texts[1])};
  if (codes[0].empty() || codes[1].empty()) return 10;
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; number++)
    threads.emplace_back([&, number] { if (int code = work(number, codes[number / 2 % 2])) failed = code; });
  for (std::thread &thread : threads) thread.join();
  return failed;
}
