// Has the libraries of the arguments ask for the name of device 0, each in a scope of its own, and asks itself. After an
// argument `/`, the working directory is another one when they ask.
#define __HIP_PLATFORM_AMD__
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX = 8 };

int main(int count, char **paths) {
  void (*ask[MAX])(const char *) = {0};
  int leaves = 0;
  for (int i = 1; i < count && i < MAX; i++) {
    if (!strcmp(paths[i], "/")) { leaves = 1; continue; }
    void *library = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    ask[i] = library ? (void (*)(const char *))dlsym(library, "ask") : NULL;
    if (!ask[i]) return fprintf(stderr, "%s\n", dlerror()), 1;
  }
  if (leaves && chdir("/")) return 2;
  hipDeviceProp_t properties;
  hipError_t status = hipGetDeviceProperties(&properties, 0);
  printf("program %s %d\n", properties.gcnArchName, status);
  for (int i = 1; i < count && i < MAX; i++)
    if (ask[i]) ask[i](paths[i]);
  return 0;
}
