// Fourier transforms of sizes with several radices, on each device. rocFFT compiles its kernels while the program runs.
#include <hip/hip_runtime_api.h>
#include <stddef.h>

typedef void *plan_t;
int rocfft_setup(void), rocfft_cleanup(void), rocfft_plan_destroy(plan_t);
int rocfft_plan_create(plan_t *, int placement, int type, int precision, size_t dimensions, const size_t *lengths,
                       size_t number, void *description);
int rocfft_execute(plan_t, void **in, void **out, void *information);

static int transform(size_t size) {
  void *data;
  plan_t plan;
  if (hipMalloc(&data, 1 << 20)) return 12;
  // In place, complex, forward, single precision.
  if (rocfft_plan_create(&plan, 0, 0, 0, 1, &size, 2, NULL)) return 13;
  if (rocfft_execute(plan, &data, NULL, NULL)) return 14;
  if (hipDeviceSynchronize()) return 15;
  return rocfft_plan_destroy(plan) || hipFree(data) ? 16 : 0;
}

int main(void) {
  int devices;
  if (hipGetDeviceCount(&devices)) return 10;
  for (int device = 0; device < devices; device++) {
    static const size_t sizes[] = {64, 336, 1000, 8192};
    if (hipSetDevice(device) || rocfft_setup()) return 11;
    for (int number = 0; number < 4; number++) {
      int failed = transform(sizes[number]);
      if (failed) return failed;
    }
    if (rocfft_cleanup()) return 17;
  }
}
