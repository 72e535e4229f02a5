// The name of each device by every way in which programs ask for it.
#define _GNU_SOURCE
#define __HIP_PLATFORM_AMD__
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <hip/hip_deprecated.h>
#include <stdio.h>
#include <string.h>

typedef hipError_t (*Old)(hipDeviceProp_tR0000 *, int);
typedef hipError_t (*New)(hipDeviceProp_tR0600 *, int);
typedef struct { hipDeviceProp_tR0000 properties; char guard[64]; } Guarded;

static void old(const char *way, void *function, int device) {
  Guarded guarded;
  memset(&guarded, 0x5a, sizeof guarded);
  hipError_t status = function ? ((Old)function)(&guarded.properties, device) : hipErrorUnknown;
  for (unsigned i = 0; i < sizeof guarded.guard; i++)
    if (guarded.guard[i] != 0x5a) status = hipErrorInvalidValue;
  printf("%d %s %s %d\n", device, way, status ? "-" : guarded.properties.gcnArchName, status);
}
static void new(const char *way, void *function, int device) {
  hipDeviceProp_tR0600 properties;
  hipError_t status = function ? ((New)function)(&properties, device) : hipErrorUnknown;
  printf("%d %s %s %d\n", device, way, status ? "-" : properties.gcnArchName, status);
}
static void *by_hip(const char *name, int version) {
  void *function = NULL;
  hipDriverProcAddressQueryResult result;
  return hipGetProcAddress(name, &function, version, 0, &result) ? NULL : function;
}

int main(void) {
  int count;
  if (hipGetDeviceCount(&count)) return 1;
  for (int device = 0; device < count; device++) {
    new("linked-R0600", (void *)hipGetDevicePropertiesR0600, device);
    old("linked-R0000", (void *)hipGetDevicePropertiesR0000, device);
    new("dlsym-R0600", dlsym(RTLD_DEFAULT, "hipGetDevicePropertiesR0600"), device);
    old("dlsym-R0000", dlsym(RTLD_DEFAULT, "hipGetDevicePropertiesR0000"), device);
    old("dlsym-plain", dlsym(RTLD_DEFAULT, "hipGetDeviceProperties"), device);
    new("dlvsym-R0600", dlvsym(RTLD_DEFAULT, "hipGetDevicePropertiesR0600", "hip_6.0"), device);
    old("dlvsym-plain", dlvsym(RTLD_DEFAULT, "hipGetDeviceProperties", "hip_4.2"), device);
    new("proc-new", by_hip("hipGetDeviceProperties", 600), device);
    old("proc-old", by_hip("hipGetDeviceProperties", 500), device);
  }
  new("wrong-device", (void *)hipGetDevicePropertiesR0600, count);
  return 0;
}
