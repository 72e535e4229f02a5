// Loads one library after the other, has it ask for the name, and unloads it. Prints its address on standard error: the
// next one is often loaded there.
#define __HIP_PLATFORM_AMD__
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <stdio.h>

int main(int count, char **paths) {
  int devices;
  if (hipGetDeviceCount(&devices)) return 1; // HIP stays when they are gone.
  for (int i = 1; i < count; i++) {
    void *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    void (*ask)(const char *) = library ? (void (*)(const char *))dlsym(library, "ask") : NULL;
    if (!ask) return fprintf(stderr, "%s\n", dlerror()), 2;
    fprintf(stderr, "%p\n", (void *)ask);
    ask(paths[i]);
    if (dlclose(library)) return 3;
  }
  return 0;
}
