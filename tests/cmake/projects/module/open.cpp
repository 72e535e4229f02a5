// Opens the module and starts its kernel.
#include <cstdio>
#include <dlfcn.h>

int main() {
  void *module = dlopen(MODULE_FILE, RTLD_NOW);
  void *symbol = module ? dlsym(module, "_Z5startv") : nullptr;
  if (!symbol) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  std::puts(reinterpret_cast<const char *(*)()>(symbol)());
}
