// Questions to the dynamic loader for functions with a version: HIP's, others', and some that have no answer.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_in(void *function, const char *library) {
  Dl_info info;
  return function && dladdr(function, &info) && strstr(info.dli_fname, library) != NULL;
}

int main(void) {
  const char *name = "hipGetDevicePropertiesR0600";
  printf("own %d\n", is_in(dlvsym(RTLD_DEFAULT, name, "hip_6.0"), "libhotswap-names"));
  // libc's, and after the program: both are asked for the caller, not for the library that is asked first.
  printf("qsort %d\n", dlvsym(RTLD_DEFAULT, "qsort", "GLIBC_2.2.5") == (void *)qsort);
  printf("next %d\n", is_in(dlvsym(RTLD_NEXT, "qsort", "GLIBC_2.2.5"), "libc.so"));
  dlerror();
  printf("no version %d", dlvsym(RTLD_DEFAULT, name, "hip_99.9") != NULL);
  printf(" message %d\n", dlerror() != NULL);
  printf("no function %d", dlvsym(RTLD_DEFAULT, "hipNoSuchFunction", "hip_6.0") != NULL);
  printf(" message %d\n", dlerror() != NULL);
  void *hip = dlopen("libamdhip64.so.7", RTLD_LAZY);
  void *function = hip ? dlvsym(hip, name, "hip_6.0") : NULL;
  printf("handle %d hips %d\n", function != NULL, is_in(function, "libamdhip64"));
  return 0;
}
