// A HIP module that calls device functions of another module, by examples/hook. Arguments: the library, the user.
#include <hip/hip_runtime_api.h>

#include <cstdint>
#include <cstdio>
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

int main(int count, char **words) { return count == 3 ? modules(words[1], words[2]) : 2; }
