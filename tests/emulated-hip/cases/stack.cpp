// Starts a kernel of a code object. Arguments: the file, `again`, `hidden` or `pointed`, its argument, the limit of the stack (0: HIP's own).
#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define DEVICE static
#define VARIABLE static
#include "stack.h"

enum { ITEMS = 64 };

int main(int count, char **words) {
  if (count != 5) return 2;
  std::string name = words[2];
  int n = std::atoi(words[3]), limit = std::atoi(words[4]);
  if (limit && hipDeviceSetLimit(hipLimitStackSize, limit)) return puts("no limit"), 1;
  hipModule_t module;
  hipFunction_t kernel;
  if (hipModuleLoad(&module, words[1])) return puts("not loaded"), 1;
  if (hipModuleGetFunction(&kernel, module, ("k_" + name).c_str())) return puts("no kernel"), 1;
  void *to;
  if (hipMalloc(&to, ITEMS * 4)) return 1;
  void *arguments[] = {&to, &n};
  if (hipModuleLaunchKernel(kernel, 1, 1, 1, ITEMS, 1, 1, 0, nullptr, arguments, nullptr)) return puts("no launch"), 1;
  std::vector<int> found(ITEMS);
  if (hipMemcpy(found.data(), to, ITEMS * 4, hipMemcpyDeviceToHost)) return puts("the kernel failed"), 1;
  int expected = name == "again" ? again(n) : name == "hidden" ? hidden(n) : pointed(n), same = 0;
  for (int value : found) same += value == expected;
  printf("%d of %d values\n", same, ITEMS);
  return same != ITEMS;
}
