// A HIP module that calls device functions of another module, by examples/hook. With `table` the program plays the runtime that
// passes its table of functions to the tools library. Arguments: the library, the user, what to expect; then `table LIBRARY`.
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <hsa/hsa.h>
#define AMD_INTERNAL_BUILD // the next header finds the others beside itself
#include <hsa/hsa_api_trace.h>
#include <hsa/hsa_ven_amd_loader.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

enum { ITEMS = 128, WORDS = 120 };

// The device's functions once more.
static uint32_t twist(uint32_t x) { return x * 2654435761u ^ x >> 7; }
static uint32_t mix(const uint32_t *words, uint32_t n) {
  uint32_t a[WORDS], sum = n;
  for (int i = 0; i < WORDS; i++) a[i] = words[i] * n;
  for (int i = 0; i < WORDS; i++) sum = sum * 31 + (a[i] ^ a[WORDS - 1 - i]) + a[i * 7 % WORDS];
  for (int i = 0; i < WORDS; i++) sum = sum * (a[i] | 1) + a[i * 13 % WORDS];
  return twist(sum);
}

static int modules(const char *library, const char *user) {
  hipModule_t first, second;
  hipFunction_t kernel;
  if (hipModuleLoad(&first, library)) return puts("the library is not loaded"), 1;
  if (hipModuleLoad(&second, user)) return puts("the user is refused"), 1;
  if (hipModuleGetFunction(&kernel, second, "k_mix")) return puts("there is no kernel"), 1;
  std::vector<uint32_t> words(WORDS), found(ITEMS);
  for (uint32_t i = 0; i < WORDS; i++) words[i] = i * i + 17;
  void *to, *from;
  if (hipMalloc(&to, ITEMS * 4) || hipMalloc(&from, WORDS * 4)) return 1;
  if (hipMemcpy(from, words.data(), WORDS * 4, hipMemcpyHostToDevice)) return 1;
  void *arguments[] = {&to, &from};
  if (hipModuleLaunchKernel(kernel, ITEMS / 64, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr)) return puts("no launch"), 1;
  if (hipMemcpy(found.data(), to, ITEMS * 4, hipMemcpyDeviceToHost)) return 1;
  int same = 0;
  for (uint32_t i = 0; i < ITEMS; i++) same += found[i] == (mix(words.data(), i + 3) ^ twist(i));
  printf("%d of %d values\n", same, ITEMS);
  return hipModuleUnload(second) || hipModuleUnload(first);
}

static std::string file(const char *path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

static hsa_status_t find_gpu(hsa_agent_t agent, void *data) {
  hsa_device_type_t type;
  hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
  if (type == HSA_DEVICE_TYPE_GPU) *static_cast<hsa_agent_t *>(data) = agent;
  return HSA_STATUS_SUCCESS;
}

// The runtime's functions go through the table, as in ROCr.
static int by_table(const char *library, const char *user, const char *hook) {
  CoreApiTable core{};
  HsaApiTable table{};
  table.core_ = &core;
  core.hsa_code_object_reader_create_from_memory_fn = hsa_code_object_reader_create_from_memory;
  core.hsa_code_object_reader_destroy_fn = hsa_code_object_reader_destroy;
  core.hsa_executable_load_agent_code_object_fn = hsa_executable_load_agent_code_object;
  core.hsa_executable_destroy_fn = hsa_executable_destroy;
  void *tool = dlopen(hook, RTLD_NOW);
  if (!tool) return puts(dlerror()), 1;
  auto on_load = reinterpret_cast<bool (*)(void *, uint64_t, uint64_t, const char *const *)>(dlsym(tool, "OnLoad"));
  if (hsa_init() || !on_load || !on_load(&table, 0, 0, nullptr)) return puts("OnLoad"), 1;
  hsa_agent_t gpu{};
  hsa_iterate_agents(find_gpu, &gpu);
  std::string bytes[] = {file(library), file(user)};
  hsa_executable_t executables[2];
  for (int i = 0; i < 2; i++) {
    hsa_code_object_reader_t reader;
    hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr, &executables[i]);
    if (core.hsa_code_object_reader_create_from_memory_fn(bytes[i].data(), bytes[i].size(), &reader)) return 1;
    if (core.hsa_executable_load_agent_code_object_fn(executables[i], gpu, reader, nullptr, nullptr))
      return puts("the user is refused"), 1;
    if (hsa_executable_freeze(executables[i], nullptr) || core.hsa_code_object_reader_destroy_fn(reader)) return 1;
  }
  puts("both are loaded");
  return core.hsa_executable_destroy_fn(executables[1]) || core.hsa_executable_destroy_fn(executables[0]);
}

int main(int count, char **words) {
  if (count == 5 && !strcmp(words[3], "table")) return by_table(words[1], words[2], words[4]);
  return count == 3 ? modules(words[1], words[2]) : 2;
}
