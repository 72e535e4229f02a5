// Calls of rocBLAS of several levels and types. Its headers are in another package; these are the declarations of them.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <stdio.h>

typedef void *Handle;
enum { NONE = 111, TRANSPOSE = 112, LEFT = 141, LOWER = 122, NON_UNIT = 131 };
int rocblas_create_handle(Handle *handle);
int rocblas_destroy_handle(Handle handle);
int rocblas_sgemm(Handle, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
int rocblas_dgemm(Handle, int, int, int, int, int, const double *, const double *, int, const double *, int, const double *, double *, int);
int rocblas_hgemm(Handle, int, int, int, int, int, const unsigned short *, const unsigned short *, int, const unsigned short *, int, const unsigned short *, unsigned short *, int);
int rocblas_sscal(Handle, int, const float *, float *, int);
int rocblas_sdot(Handle, int, const float *, int, const float *, int, float *);
int rocblas_sgemv(Handle, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
int rocblas_strsm(Handle, int, int, int, int, int, int, const float *, const float *, int, float *, int);

static void check(const char *call, int status) { printf("%s %d\n", call, status); }

static int use_device(int device) {
  static const int sizes[] = {1, 16, 100, 1024};
  const float one = 1;
  const double wide = 1;
  const unsigned short half = 0x3c00;
  float result;
  void *a, *b, *c;
  Handle handle;
  if (hipSetDevice(device) || hipMalloc(&a, 16 << 20) || hipMalloc(&b, 16 << 20) || hipMalloc(&c, 16 << 20)) return 1;
  if (hipMemset(a, 0, 16 << 20) || hipMemset(b, 0, 16 << 20) || rocblas_create_handle(&handle)) return 2;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int n = sizes[i];
    check("sgemm", rocblas_sgemm(handle, NONE, NONE, n, n, n, &one, a, n, b, n, &one, c, n));
    check("sgemm", rocblas_sgemm(handle, TRANSPOSE, NONE, n, 1, n, &one, a, n, b, n, &one, c, n));
    check("dgemm", rocblas_dgemm(handle, NONE, TRANSPOSE, n, n, n, &wide, a, n, b, n, &wide, c, n));
    check("hgemm", rocblas_hgemm(handle, NONE, NONE, n, n, n, &half, a, n, b, n, &half, c, n));
    check("sscal", rocblas_sscal(handle, n, &one, a, 1));
    check("sdot", rocblas_sdot(handle, n, a, 1, b, 1, &result));
    check("sgemv", rocblas_sgemv(handle, NONE, n, n, &one, a, n, b, 1, &one, c, 1));
    check("strsm", rocblas_strsm(handle, LEFT, LOWER, NONE, NON_UNIT, n, n, &one, a, n, b, n));
  }
  return rocblas_destroy_handle(handle) || hipDeviceSynchronize() ? 3 : 0;
}

int main(void) {
  int count;
  if (hipGetDeviceCount(&count)) return 10;
  for (int device = 0; device < count; device++) {
    int failed = use_device(device);
    if (failed) return failed;
  }
  return 0;
}
