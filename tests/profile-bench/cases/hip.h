// The part of HIP that the cases use, so that they compile fast with every clang.
#pragma once
typedef struct dim3 { unsigned x, y, z; dim3(unsigned x, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {} } dim3;
typedef int hipError_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipModule_t *hipModule_t;
extern "C" {
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, unsigned long shared = 0, hipStream_t stream = 0);
hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, unsigned long *shared, hipStream_t *stream);
hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, unsigned long shared, hipStream_t stream);
hipError_t hipGetDeviceCount(int *count);
hipError_t hipSetDevice(int device);
hipError_t hipDeviceSynchronize(void);
hipError_t hipModuleLoad(hipModule_t *module, const char *path);
hipError_t hipModuleLoadData(hipModule_t *module, const void *file);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleGetFunction(void **function, hipModule_t module, const char *name);
hipError_t hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, hipStream_t stream, void **arguments, void **extra);
int hotswap_profile_drain(void);
}
