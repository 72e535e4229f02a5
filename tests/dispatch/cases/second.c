// Two HIP libraries in one process: functions of the second are looked up by its handle.
#define _GNU_SOURCE
#define __HIP_PLATFORM_AMD__
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  hipDeviceProp_t properties;
  if (hipGetDeviceProperties(&properties, 0)) return 1;
  printf("linked %s\n", properties.gcnArchName);
  Dl_info info;
  for (int i = 0; i < 2; i++) {
    void *hip = dlopen(i ? "./second/libamdhip64.so.7" : "libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL);
    void *function = hip ? dlsym(hip, "hipGetDevicePropertiesR0600") : NULL;
    if (!function || !dladdr(function, &info)) return fprintf(stderr, "%s\n", dlerror()), 2;
    const char *file = strrchr(info.dli_fname, '/');
    printf("handle %d %s%s\n", i, strstr(info.dli_fname, "second/") ? "second" : "first", strstr(file, "names") ? " ours" : "");
  }
  return 0;
}
