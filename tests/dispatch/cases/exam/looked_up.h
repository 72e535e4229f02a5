// HIP's functions by the handle of its library, as programs call them that work without HIP, too. The text of a program
// that is linked with HIP follows.
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

static void *looked_up(const char *name) {
  static void *const hip = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL);
  return dlsym(hip, name);
}
#define LOOKED_UP(name) ((decltype(&name))looked_up(#name))
#define hipGetDeviceCount LOOKED_UP(hipGetDeviceCount)
#define hipSetDevice LOOKED_UP(hipSetDevice)
#define hipGetDevicePropertiesR0600 LOOKED_UP(hipGetDevicePropertiesR0600)
#define hipModuleLoadData LOOKED_UP(hipModuleLoadData)
#define hipModuleUnload LOOKED_UP(hipModuleUnload)
#define hipModuleGetFunction LOOKED_UP(hipModuleGetFunction)
#define hipModuleLaunchKernel LOOKED_UP(hipModuleLaunchKernel)
#define hipDeviceSynchronize LOOKED_UP(hipDeviceSynchronize)
#define hipFree LOOKED_UP(hipFree)

