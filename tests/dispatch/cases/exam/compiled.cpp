// A program that compiles its kernels for the GPU whose name it sees, and chooses their work-groups by that name.
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
#include <string>
#include <vector>

static const char *const text = R"(
template <typename T, int size> __device__ T sum(const T *p) {
  T total = 0;
  for (int i = 0; i < size; i++) total += p[i];
  return total;
}
extern "C" __global__ void scale(float *p, float by) { p[blockIdx.x * blockDim.x + threadIdx.x] *= by; }
extern "C" __global__ void reduce(float *p) {
  __shared__ float part[512];
  part[threadIdx.x] = p[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) p[blockIdx.x] = sum<float, 64>(part);
}
extern "C" __global__ void doubles(double *p) { p[threadIdx.x] = sum<double, 7>(p + threadIdx.x); }
)";

static std::vector<char> compile(const std::string &gpu) {
  hiprtcProgram program;
  size_t size = 0;
  const std::string option = "--offload-arch=" + gpu;
  const char *options[] = {option.c_str(), "-O3"};
  if (hiprtcCreateProgram(&program, text, "kernels", 0, nullptr, nullptr)) return {};
  if (hiprtcCompileProgram(program, 2, options) || hiprtcGetCodeSize(program, &size)) return {};
  std::vector<char> code(size);
  if (hiprtcGetCode(program, code.data())) return {};
  return code;
}

int main() {
  int devices;
  if (hipGetDeviceCount(&devices)) return 10;
  for (int device = 0; device < devices; device++) {
    hipDeviceProp_t properties;
    hipModule_t module;
    void *data;
    if (hipSetDevice(device) || hipGetDeviceProperties(&properties, device)) return 11;
    const std::string gpu = properties.gcnArchName;
    const unsigned size = gpu == "gfx1030" ? 256 : 64;
    const std::vector<char> code = compile(gpu);
    if (code.empty() || hipModuleLoadData(&module, code.data()) || hipMalloc(&data, 1 << 20)) return 12;
    float by = 2;
    void *arguments[] = {&data, &by};
    for (const char *name : {"scale", "reduce", "doubles"}) {
      hipFunction_t kernel;
      if (hipModuleGetFunction(&kernel, module, name)) return 13;
      if (hipModuleLaunchKernel(kernel, 4096 / size, 1, 1, size, 1, 1, 0, nullptr, arguments, nullptr)) return 14;
    }
    if (hipDeviceSynchronize() || hipFree(data) || hipModuleUnload(module)) return 15;
  }
}
