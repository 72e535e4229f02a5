// Code that is compiled while the program runs, for the name that HIP states, is loaded in a way of the arguments' choice.
//
// runtime WAY [TARGET | @FILE]: TARGET is compiled for in the place of the name, FILE is loaded as it is. Prints the status
// of the load.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>
#include <iterator>
#include <string>
#include <vector>

static std::vector<char> compiled(const char *target) {
  hiprtcProgram program;
  std::string option = std::string("--offload-arch=") + target;
  const char *options[] = {option.c_str()};
  const char *text = "extern \"C\" __global__ void twice(float *data) { data[threadIdx.x] *= 2; }";
  if (hiprtcCreateProgram(&program, text, "a.hip", 0, nullptr, nullptr)) std::exit(20);
  if (hiprtcCompileProgram(program, 1, options)) std::exit(21);
  size_t size;
  if (hiprtcGetCodeSize(program, &size)) std::exit(22);
  std::vector<char> code(size);
  if (hiprtcGetCode(program, code.data())) std::exit(23);
  hiprtcDestroyProgram(&program);
  return code;
}

static std::vector<char> code_for(const char *target) {
  if (*target != '@') return compiled(target);
  std::ifstream file(target + 1, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static int launch(hipFunction_t function) {
  float *data;
  void *arguments[] = {&data};
  if (hipMalloc(&data, 256)) return 30;
  if (hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr)) return 31;
  return hipDeviceSynchronize() ? 32 : 0;
}

// The module is a reference, because the call that loads it is an argument beside it.
static int use(hipError_t status, const hipModule_t &module) {
  std::printf("load %d\n", status);
  hipFunction_t function;
  if (status) return 0;
  if (hipModuleGetFunction(&function, module, "twice")) return 33;
  int result = launch(function);
  return result ? result : hipModuleUnload(module);
}

static int use_library(hipError_t status, const hipLibrary_t &library) {
  std::printf("load %d\n", status);
  hipKernel_t kernel;
  if (status) return 0;
  status = hipLibraryGetKernel(&kernel, library, "twice");
  std::printf("kernel %d\n", status);
  if (status) return 0;
  float *data;
  void *arguments[] = {&data};
  if (hipMalloc(&data, 256)) return 30;
  if (hipLaunchKernel((const void *)kernel, dim3(1), dim3(64), arguments, 0, nullptr)) return 34;
  return hipDeviceSynchronize() ? 35 : hipLibraryUnload(library);
}

// The function as HIP itself returns it.
static hipError_t by_address(hipModule_t *module, const void *image) {
  void *function = nullptr;
  hipDriverProcAddressQueryResult result;
  hipError_t status = hipGetProcAddress("hipModuleLoadData", &function, 700, 0, &result);
  return status ? status : ((hipError_t(*)(hipModule_t *, const void *))function)(module, image);
}

// The headers declare both calls twice, with one and with two levels of pointers.
static hipJitOption *no_jit = nullptr;
static hipLibraryOption *no_options = nullptr;

// A library is loaded for the device that is current when it is used first.
static int loaded_on_the_first(const void *image) {
  int device;
  hipLibrary_t library = nullptr;
  if (hipGetDevice(&device) || hipSetDevice(0)) return 36;
  hipError_t status = hipLibraryLoadData(&library, image, no_jit, nullptr, 0, no_options, nullptr, 0);
  return hipSetDevice(device) ? 37 : use_library(status, library);
}

static int with_way(const std::string &way, std::vector<char> code) {
  hipModule_t module = nullptr;
  hipLibrary_t library = nullptr;
  if (way == "file" || way == "library-file") std::ofstream("code.co", std::ios::binary).write(code.data(), code.size());
  if (way == "file") return use(hipModuleLoad(&module, "code.co"), module);
  if (way == "data") return use(hipModuleLoadData(&module, code.data()), module);
  if (way == "fat-binary") return use(hipModuleLoadFatBinary(&module, code.data()), module);
  if (way == "data-ex") return use(hipModuleLoadDataEx(&module, code.data(), 0, nullptr, nullptr), module);
  if (way == "library-later") return loaded_on_the_first(code.data());
  if (way == "address") return use(by_address(&module, code.data()), module);
  if (way == "library-file")
    return use_library(hipLibraryLoadFromFile(&library, "code.co", no_jit, nullptr, 0, no_options, nullptr, 0), library);
  if (way == "library-data")
    return use_library(hipLibraryLoadData(&library, code.data(), no_jit, nullptr, 0, no_options, nullptr, 0), library);
  return 40;
}

int main(int count, char **words) {
  int devices;
  if (count < 2 || hipGetDeviceCount(&devices)) return 10;
  for (int device = 0; device < devices; device++) {
    hipDeviceProp_t properties;
    if (hipSetDevice(device) || hipGetDeviceProperties(&properties, device)) return 11;
    if (int failed = with_way(words[1], code_for(count > 2 ? words[2] : properties.gcnArchName))) return failed;
  }
}
