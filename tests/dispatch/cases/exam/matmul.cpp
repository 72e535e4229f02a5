// hipBLASLt: all algorithms for products of several types, transpositions, sizes and epilogues, and one of them again
// by its number, as a program that has kept the number asks for it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <hip/hip_runtime_api.h>
#include <hipblaslt/hipblaslt-ext.hpp>
#include <hipblaslt/hipblaslt.h>
#include <vector>

static const struct { hipDataType input, output; } types[] = {
    {HIP_R_32F, HIP_R_32F}, {HIP_R_16F, HIP_R_16F}, {HIP_R_16F, HIP_R_32F}, {HIP_R_16BF, HIP_R_16BF}};
static const uint64_t sizes[][3] = {{16, 16, 16}, {64, 64, 64}, {128, 200, 72}, {256, 256, 1024}, {37, 53, 71}, {1, 100, 100}};
static const hipblasLtEpilogue_t epilogues[] = {HIPBLASLT_EPILOGUE_DEFAULT, HIPBLASLT_EPILOGUE_RELU, HIPBLASLT_EPILOGUE_GELU};
enum { BYTES = 64 << 20, ALGORITHMS = 200 };
static unsigned calls, found, failed;

struct Buffers { void *a, *b, *c, *space; };

static int multiply(hipblasLtHandle_t handle, const Buffers &buffers, int type, int way, int size, int epilogue) {
  hipblasOperation_t first = way & 1 ? HIPBLAS_OP_T : HIPBLAS_OP_N, second = way & 2 ? HIPBLAS_OP_T : HIPBLAS_OP_N;
  uint64_t m = sizes[size][0], n = sizes[size][1], k = sizes[size][2], space = BYTES;
  hipDataType in = types[type].input, out = types[type].output;
  hipblasLtMatmulDesc_t product;
  hipblasLtMatrixLayout_t a, b, c;
  hipblasLtMatmulPreference_t preference;
  static hipblasLtMatmulHeuristicResult_t results[ALGORITHMS];
  int count = 0;
  float one = 1;
  bool bad = hipblasLtMatmulDescCreate(&product, HIPBLAS_COMPUTE_32F, HIP_R_32F) ||
             hipblasLtMatmulDescSetAttribute(product, HIPBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first) ||
             hipblasLtMatmulDescSetAttribute(product, HIPBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second) ||
             hipblasLtMatmulDescSetAttribute(product, HIPBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[epilogue], sizeof *epilogues) ||
             hipblasLtMatrixLayoutCreate(&a, in, way & 1 ? k : m, way & 1 ? m : k, way & 1 ? k : m) ||
             hipblasLtMatrixLayoutCreate(&b, in, way & 2 ? n : k, way & 2 ? k : n, way & 2 ? n : k) ||
             hipblasLtMatrixLayoutCreate(&c, out, m, n, m) || hipblasLtMatmulPreferenceCreate(&preference) ||
             hipblasLtMatmulPreferenceSetAttribute(preference, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &space, sizeof space);
  if (bad) return 1;
  calls++;
  if (hipblasLtMatmulAlgoGetHeuristic(handle, product, a, b, c, c, preference, ALGORITHMS - 1, results, &count)) count = 0;
  found += count;
  std::vector<hipblasLtMatmulHeuristicResult_t> kept;
  if (count) {
    std::vector<int> numbers{hipblaslt_ext::getIndexFromAlgo(results[0].algo)};
    for (int i = 1; i < count; i++) numbers[0] = std::min(numbers[0], hipblaslt_ext::getIndexFromAlgo(results[i].algo));
    failed += hipblaslt_ext::getAlgosFromIndex(handle, numbers, kept) || kept.size() != 1;
  }
  for (auto &result : kept) results[count++] = result;
  for (int i = 0; i < count; i++)
    failed += hipblasLtMatmul(handle, product, &one, buffers.a, a, buffers.b, b, &one, buffers.c, c, buffers.c, c,
                              &results[i].algo, buffers.space, space, nullptr) != HIPBLAS_STATUS_SUCCESS;
  hipblasLtMatmulPreferenceDestroy(preference);
  hipblasLtMatrixLayoutDestroy(a), hipblasLtMatrixLayoutDestroy(b), hipblasLtMatrixLayoutDestroy(c);
  return hipblasLtMatmulDescDestroy(product);
}

static int use_device(int device) {
  Buffers buffers;
  hipblasLtHandle_t handle;
  if (hipSetDevice(device) || hipMalloc(&buffers.a, BYTES) || hipMalloc(&buffers.b, BYTES)) return 1;
  if (hipMalloc(&buffers.c, BYTES) || hipMalloc(&buffers.space, BYTES) || hipblasLtCreate(&handle)) return 2;
  calls = found = failed = 0;
  for (int type = 0; type < 4; type++)
    for (int way = 0; way < 4; way++)
      for (int size = 0; size < 6; size++)
        for (int epilogue = 0; epilogue < 3; epilogue++)
          if (multiply(handle, buffers, type, way, size, epilogue)) return 3;
  std::printf("%u calls, %u algorithms, %u failed\n", calls, found, failed);
  if (hipblasLtDestroy(handle) || hipDeviceSynchronize()) return 4;
  return hipFree(buffers.a) || hipFree(buffers.b) || hipFree(buffers.c) || hipFree(buffers.space) ? 5 : 0;
}

int main() {
  int devices;
  if (hipGetDeviceCount(&devices)) return 10;
  for (int device = 0; device < devices; device++)
    if (int failure = use_device(device)) return failure;
  return 0;
}
