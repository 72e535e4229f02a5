// Loads code objects with counters in every way, and prints how often each kernel was launched.
// Arguments: the way, and the files of the code objects; each has a kernel `count`.
#include <hip/hip_runtime.h>
#include <hip/hiprtc.h>
#include <sys/mman.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(call) do { int e = (int)(call); if (e) { printf("WRONG %s: %d\n", #call, e); exit(2); } } while (0)

static std::vector<char> content(const char *path) {
  std::vector<char> bytes;
  FILE *file = fopen(path, "rb");
  for (int c; file && (c = fgetc(file)) != EOF;) bytes.push_back((char)c);
  if (file) fclose(file);
  return bytes;
}

static std::vector<char> compiled() {
  const char *source = "extern \"C\" __global__ void count(int *p) { if (threadIdx.x & 1) p[0] = 1; }\n";
  hiprtcProgram program;
  CHECK(hiprtcCreateProgram(&program, source, "rtc.hip", 0, nullptr, nullptr));
  const char *options[] = {"-fprofile-instr-generate", "-fcoverage-mapping", "-fprofile-update=atomic"};
  if (hiprtcCompileProgram(program, 3, options)) {
    size_t size = 0;
    hiprtcGetProgramLogSize(program, &size);
    std::string log(size, 0);
    hiprtcGetProgramLog(program, log.data());
    printf("WRONG hiprtc: %s\n", log.c_str());
    exit(2);
  }
  size_t size = 0;
  CHECK(hiprtcGetCodeSize(program, &size));
  std::vector<char> code(size);
  CHECK(hiprtcGetCode(program, code.data()));
  CHECK(hiprtcDestroyProgram(&program));
  return code;
}

static void launch(hipModule_t module, int times) {
  hipFunction_t function;
  CHECK(hipModuleGetFunction(&function, module, "count"));
  void *memory;
  CHECK(hipMalloc(&memory, 4096));
  void *arguments[] = {&memory};
  for (int i = 0; i < times; ++i)
    CHECK(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  CHECK(hipDeviceSynchronize());
}

int main(int argc, char **argv) {
  std::string way = argv[1];
  const size_t room = 1 << 20;
  char *shared = (char *)mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::vector<hipModule_t> modules;
  if (way == "hiprtc") {
    std::vector<char> code = compiled();
    hipModule_t module;
    CHECK(hipModuleLoadData(&module, code.data()));
    launch(module, 3);
    memset(code.data(), 0, code.size());
  }
  for (int i = 2; i < argc; ++i) {
    std::vector<char> bytes = content(argv[i]);
    hipModule_t module;
    if (way == "file") CHECK(hipModuleLoad(&module, argv[i]));
    else if (way == "data") CHECK(hipModuleLoadData(&module, memcpy(malloc(bytes.size()), bytes.data(), bytes.size())));
    else if (way == "unmapped") {
      char *own = (char *)mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      memcpy(own, bytes.data(), bytes.size());
      CHECK(hipModuleLoadData(&module, own));
      launch(module, i);
      munmap(own, room);
      continue;
    } else if (way == "shared") {
      memcpy(shared, bytes.data(), bytes.size());
      CHECK(hipModuleLoadData(&module, shared));
    } else CHECK(hipModuleLoadData(&module, bytes.data()));  // freed
    launch(module, i);
  }
  printf("done\n");
}
