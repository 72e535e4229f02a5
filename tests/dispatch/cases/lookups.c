// Questions for HIP's functions by handles, as programs ask that work without HIP, too: nothing here is linked with it.
#define _GNU_SOURCE
#define __HIP_PLATFORM_AMD__
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <hip/hip_deprecated.h>
#include <stdio.h>
#include <string.h>

typedef hipError_t (*Properties)(hipDeviceProp_tR0600 *, int);
typedef hipError_t (*Old)(hipDeviceProp_tR0000 *, int);
typedef hipError_t (*Find)(const char *, void **, int, uint64_t, hipDriverProcAddressQueryResult *);
static const char *const name = "hipGetDevicePropertiesR0600";

static void show(const char *way, void *function) {
  hipDeviceProp_tR0600 properties;
  hipError_t status = function ? ((Properties)function)(&properties, 0) : hipErrorUnknown;
  printf("%s %s %d\n", way, status ? "-" : properties.gcnArchName, status);
}
static void show_old(const char *way, void *function) {
  hipDeviceProp_tR0000 properties;
  hipError_t status = function ? ((Old)function)(&properties, 0) : hipErrorUnknown;
  printf("%s %s %d\n", way, status ? "-" : properties.gcnArchName, status);
}
static int is_in(void *function, const char *library) {
  Dl_info info;
  return function && dladdr(function, &info) && strstr(info.dli_fname, library) != NULL;
}
static void fails(const char *what, void *function) {
  int has_message = dlerror() != NULL;
  printf("%s %d message %d\n", what, function != NULL, has_message);
}

// Before the program, and perhaps before the initialisation of the library that answers.
__attribute__((constructor)) static void early(void) {
  dlerror();
  fails("without HIP", dlsym(RTLD_DEFAULT, name));
  void *program = dlopen(NULL, RTLD_NOW);
  fails("program without HIP", dlsym(program, name));
  void *hip = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL);
  show("early", dlsym(hip, name));
  dlclose(hip);
}

int main(void) {
  void *hip = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL);
  if (!hip) return fprintf(stderr, "%s\n", dlerror()), 1;
  show("handle", dlsym(hip, name));
  show_old("old", dlsym(hip, "hipGetDeviceProperties"));
  show("version", dlvsym(hip, name, "hip_6.0"));
  Find find = (Find)dlsym(hip, "hipGetProcAddress");
  void *function = NULL;
  hipDriverProcAddressQueryResult result;
  show("found", find && !find("hipGetDeviceProperties", &function, 600, 0, &result) ? function : NULL);
  // A library that needs HIP: the question goes to what it needs.
  void *needs = dlopen("./needs.so", RTLD_NOW | RTLD_LOCAL);
  show("needs", needs ? dlsym(needs, name) : NULL);
  // Another library with functions of these names is itself the answer.
  void *other = dlopen("./other.so", RTLD_NOW | RTLD_LOCAL);
  printf("other %d\n", other && is_in(dlsym(other, name), "other.so"));
  printf("launch %d\n", is_in(dlsym(hip, "hipModuleLaunchKernel"), "libamdhip64"));
  dlerror();
  fails("no function", dlsym(hip, "hipNoSuchFunction"));
  fails("no version", dlvsym(hip, name, "hip_99.9"));
  fails("other name", dlsym(hip, "no_such_function"));
  printf("qsort %d\n", is_in(dlsym(RTLD_NEXT, "qsort"), "libc.so"));
  // A HIP library in a namespace of its own is out of reach of ours.
  void *apart = dlmopen(LM_ID_NEWLM, "libamdhip64.so.7", RTLD_NOW);
  printf("apart %d\n", !apart || is_in(dlsym(apart, name), "libamdhip64"));
  return 0;
}
