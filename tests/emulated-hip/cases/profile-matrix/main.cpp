// The host of a row: `main MODULE FORK FIRSTS INITS SECONDS`. MODULE is how a code object is loaded, FORK when a child is made.
// Each process prints what its counters must hold: `count FILE FUNCTION NUMBER`.
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
int hipMalloc(void **, size_t);
int hipDeviceSynchronize();
int hipModuleLoad(void **, const char *);
int hipModuleLoadData(void **, const void *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int hiprtcCreateProgram(void **, const char *, const char *, int, const char **, const char **);
int hiprtcCompileProgram(void *, int, const char **);
int hiprtcGetCodeSize(void *, size_t *);
int hiprtcGetCode(void *, char *);
int hiprtcDestroyProgram(void **);
}
void launch_1(int *p, bool is_first);
void launch_2(int *p, bool is_first);

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
#define CHECK(call) do { if (int e = (call)) { printf("WRONG %s: %d\n", #call, e); exit(2); } } while (0)
constexpr int LANES = 64;
constexpr int LOADED = 5;

// LLVM's %m is the same for programs with the same functions of the host, whose counts it adds: these differ.
#if PROGRAM == 2
__attribute__((noinline)) static int second_only(int a) { return a > 1 ? a : 1; }
#endif

static void say(const char *file, const char *function, int count) {
  printf("count %s %s %d\n", file, function, count);
  fflush(stdout);
}

__attribute__((noinline)) static void work(int unit, bool is_first, int *p) {
  if (unit == 1) launch_1(p, is_first);
  else launch_2(p, is_first);
}

static std::vector<char> content(const char *path) {
  std::vector<char> bytes;
  FILE *file = fopen(path, "rb");
  for (int c; file && (c = fgetc(file)) != EOF;) bytes.push_back((char)c);
  if (file) fclose(file);
  return bytes;
}

// The code is kept in a file too, for the report.
static std::vector<char> compiled() {
  const char *source = "extern \"C\" __global__ void loaded(int *p) { if (threadIdx.x & 1) p[0] = " TEXT(PROGRAM) "; }\n";
  void *program;
  CHECK(hiprtcCreateProgram(&program, source, "module.hip", 0, nullptr, nullptr));
  const char *options[] = {"-fprofile-instr-generate", "-fcoverage-mapping", "-fprofile-update=atomic"};
  CHECK(hiprtcCompileProgram(program, 3, options));
  size_t size = 0;
  CHECK(hiprtcGetCodeSize(program, &size));
  std::vector<char> code(size);
  CHECK(hiprtcGetCode(program, code.data()));
  CHECK(hiprtcDestroyProgram(&program));
  FILE *file = fopen("hiprtc-" TEXT(PROGRAM) ".co", "wb");
  fwrite(code.data(), 1, size, file);
  fclose(file);
  return code;
}

static void use_module(const std::string &way, const char *path, int *p) {
  if (way == "none") return;
  std::vector<char> bytes = way == "hiprtc" ? compiled() : content(path);
  void *module, *function;
  if (way == "file") CHECK(hipModuleLoad(&module, path));
  else if (way == "data") CHECK(hipModuleLoadData(&module, memcpy(malloc(bytes.size()), bytes.data(), bytes.size())));
  else CHECK(hipModuleLoadData(&module, bytes.data()));
  CHECK(hipModuleGetFunction(&function, module, "loaded"));
  void *arguments[] = {&p};
  for (int i = 0; i < LOADED; ++i)
    CHECK(hipModuleLaunchKernel(function, 1, 1, 1, LANES, 1, 1, 0, nullptr, arguments, nullptr));
  CHECK(hipDeviceSynchronize());
  memset(bytes.data(), 0, bytes.size());
  say("module.hip", "loaded", LOADED * LANES);
}

static void run(char **words) {
  int firsts = atoi(words[4]), inits = atoi(words[5]), seconds = atoi(words[6]);
  int *p;
  CHECK(hipMalloc((void **)&p, 4096));
  for (int i = 0; i < firsts; ++i) work(1, true, p);
  for (int i = 0; i < inits; ++i) work(1, false, p);
  for (int i = 0; i < seconds; ++i) work(2, true, p);
  CHECK(hipDeviceSynchronize());
  use_module(words[1], words[2], p);
  say("unit-1.hip", "first", firsts * LANES);
  say("unit-1.hip", "half", firsts * LANES / 2);
  say("unit-1.hip", "init", inits * LANES);
  say("unit-1.hip", "idle", 0);
  say("unit-2.hip", "first", seconds * LANES);
  say("unit-2.hip", "half", seconds * LANES / 2);
  say("unit-2.hip", "init", 0);
  say("unit-2.hip", "idle", 0);
  say("main.cpp", "work", firsts + inits + seconds);
  say("main.cpp", "main", 1);
}

// A child made before HIP's start works, too; one made later has no GPU, and a copy of its parent's counters of the host.
static int wait_for_child(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) < 0 || status) printf("WRONG child: %d\n", status);
  return status;
}

int main(int count, char **words) {
  std::string fork_time = words[3];
#if PROGRAM == 2
  count = second_only(count);
#endif
  if (count < 7) return 3;
  if (fork_time == "before") {
    pid_t child = fork();
    if (child == 0) { run(words); return 0; }
    if (wait_for_child(child)) return 1;
  }
  run(words);
  if (fork_time == "after") {
    pid_t child = fork();
    if (child == 0) {
      say("main.cpp", "work", atoi(words[4]) + atoi(words[5]) + atoi(words[6]));
      say("main.cpp", "main", 1);
      return 0;
    }
    if (wait_for_child(child)) return 1;
  }
  printf("done\n");
}
