// Calls of rocBLAS of all levels: GEMM by type, transposition, size and batch, and a call of each further kind.
// Its headers are in another package; these are the declarations of them.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <stdint.h>
#include <stdio.h>

typedef void *Handle;
enum { NONE = 111, TRANSPOSE = 112, CONJUGATE = 113, LEFT = 141, LOWER = 122, NON_UNIT = 131, STANDARD = 0 };
enum { F16 = 150, F32 = 151, F64 = 152, F32_C = 154, F64_C = 155, I8 = 160, I32 = 162, BF16 = 168 };
enum { BYTES = 48 << 20 };
int rocblas_create_handle(Handle *handle);
int rocblas_destroy_handle(Handle handle);
int rocblas_gemm_ex(Handle, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *,
                    const void *, int, int, void *, int, int, int, int, int32_t, uint32_t);
int rocblas_gemm_strided_batched_ex(Handle, int, int, int, int, int, const void *, const void *, int, int, int64_t, const void *,
                                    int, int, int64_t, const void *, const void *, int, int, int64_t, void *, int, int, int64_t,
                                    int, int, int, int32_t, uint32_t);
int rocblas_sscal(Handle, int, const float *, float *, int);
int rocblas_dscal(Handle, int, const double *, double *, int);
int rocblas_saxpy(Handle, int, const float *, const float *, int, float *, int);
int rocblas_sdot(Handle, int, const float *, int, const float *, int, float *);
int rocblas_snrm2(Handle, int, const float *, int, float *);
int rocblas_isamax(Handle, int, const float *, int, int *);
int rocblas_sgemv(Handle, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
int rocblas_dgemv(Handle, int, int, int, const double *, const double *, int, const double *, int, const double *, double *, int);
int rocblas_sger(Handle, int, int, const float *, const float *, int, const float *, int, float *, int);
int rocblas_strsm(Handle, int, int, int, int, int, int, const float *, const float *, int, float *, int);
int rocblas_ssyrk(Handle, int, int, int, int, const float *, const float *, int, const float *, float *, int);
int rocblas_ssymm(Handle, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);

static const struct { int input, output, compute; } types[] = {
    {F32, F32, F32}, {F64, F64, F64}, {F16, F16, F16}, {F16, F16, F32}, {F16, F32, F32}, {BF16, BF16, F32},
    {BF16, F32, F32}, {I8, I32, I32}, {F32_C, F32_C, F32_C}, {F64_C, F64_C, F64_C}};
static const int sizes[][3] = {{1, 1, 1}, {64, 64, 64}, {100, 1, 100}, {128, 200, 72}, {256, 256, 1024}, {1024, 1024, 128}, {37, 53, 71}};
#define COUNT(list) (int)(sizeof list / sizeof *list)

static unsigned calls, refused;
static void count(int status) { calls++, refused += status != 0; }

// 1 as a number of the type.
static const void *one_of(int type) {
  static const uint16_t half = 0x3c00;
  static const float one[2] = {1};
  static const double wide[2] = {1};
  static const int32_t number = 1;
  switch (type) {
  case F16: return &half;
  case F64: case F64_C: return wide;
  case I32: return &number;
  }
  return one;
}

static void multiply(Handle handle, void *a, void *b, void *c) {
  static const int transposed[][2] = {{NONE, NONE}, {NONE, TRANSPOSE}, {TRANSPOSE, NONE}, {TRANSPOSE, TRANSPOSE}, {CONJUGATE, NONE}};
  for (int type = 0; type < COUNT(types); type++)
    for (int way = 0; way < COUNT(transposed); way++)
      for (int size = 0; size < COUNT(sizes); size++) {
        int first = transposed[way][0], second = transposed[way][1], in = types[type].input, out = types[type].output;
        const void *one = one_of(types[type].compute);
        int m = sizes[size][0], n = sizes[size][1], k = sizes[size][2];
        int lda = first == NONE ? m : k, ldb = second == NONE ? k : n;
        count(rocblas_gemm_ex(handle, first, second, m, n, k, one, a, in, lda, b, in, ldb, one, c, out, m, c, out, m,
                              types[type].compute, STANDARD, 0, 0));
        if (size % 3 == 0)
          count(rocblas_gemm_strided_batched_ex(handle, first, second, m, n, k, one, a, in, lda, m * k, b, in, ldb, k * n, one,
                                                c, out, m, m * n, c, out, m, m * n, 3, types[type].compute, STANDARD, 0, 0));
      }
}

static void others(Handle handle, void *a, void *b, void *c) {
  static const int lengths[] = {1, 33, 1000, 3000};
  const float one = 1;
  const double wide = 1;
  float result;
  int place;
  for (int i = 0; i < COUNT(lengths); i++) {
    int n = lengths[i];
    count(rocblas_sscal(handle, n, &one, a, 1)), count(rocblas_dscal(handle, n, &wide, a, 1));
    count(rocblas_saxpy(handle, n, &one, a, 1, b, 1)), count(rocblas_sdot(handle, n, a, 1, b, 1, &result));
    count(rocblas_snrm2(handle, n, a, 1, &result)), count(rocblas_isamax(handle, n, a, 1, &place));
    for (int way = NONE; way <= TRANSPOSE; way++) {
      count(rocblas_sgemv(handle, way, n, n, &one, a, n, b, 1, &one, c, 1));
      count(rocblas_dgemv(handle, way, n, n, &wide, a, n, b, 1, &wide, c, 1));
      count(rocblas_ssyrk(handle, LOWER, way, n, n, &one, a, n, &one, c, n));
      count(rocblas_strsm(handle, LEFT, LOWER, way, NON_UNIT, n, n, &one, a, n, b, n));
    }
    count(rocblas_sger(handle, n, n, &one, a, 1, b, 1, c, n));
    count(rocblas_ssymm(handle, LEFT, LOWER, n, n, &one, a, n, b, n, &one, c, n));
  }
}

static int use_device(int device) {
  void *a, *b, *c;
  Handle handle;
  if (hipSetDevice(device) || hipMalloc(&a, BYTES) || hipMalloc(&b, BYTES) || hipMalloc(&c, BYTES)) return 1;
  if (hipMemset(a, 0, BYTES) || hipMemset(b, 0, BYTES) || rocblas_create_handle(&handle)) return 2;
  calls = refused = 0;
  multiply(handle, a, b, c);
  others(handle, a, b, c);
  printf("%u calls, %u refused\n", calls, refused);
  if (rocblas_destroy_handle(handle) || hipDeviceSynchronize()) return 3;
  return hipFree(a) || hipFree(b) || hipFree(c) ? 4 : 0;
}

int main(void) {
  int devices;
  if (hipGetDeviceCount(&devices)) return 10;
  for (int device = 0; device < devices; device++) {
    int failed = use_device(device);
    if (failed) return failed;
  }
  return 0;
}
