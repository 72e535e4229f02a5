// The product with one thread for each element and no reuse: the measure for the tiled kernel.
#include "epilogue.h"
#include "gemm.h"

namespace {

constexpr unsigned SIDE = 16;

__global__ void naive(GemmShape shape, const float *a, const float *b, float *c) {
  const unsigned row = blockIdx.y * SIDE + threadIdx.y;
  const unsigned column = blockIdx.x * SIDE + threadIdx.x;
  if (row >= shape.rows || column >= shape.columns)
    return;
  float sum = 0.0f;
  for (unsigned k = 0; k < shape.inner; ++k)
    sum += a[size_t(row) * shape.inner + k] * b[size_t(k) * shape.columns + column];
  float &out = c[size_t(row) * shape.columns + column];
  out = epilogue(sum, out, shape.alpha, shape.beta);
}

} // namespace

hipError_t gemm_naive(const GemmShape &shape, const float *a, const float *b, float *c, hipStream_t stream) {
  const dim3 blocks((shape.columns + SIDE - 1) / SIDE, (shape.rows + SIDE - 1) / SIDE);
  naive<<<blocks, dim3(SIDE, SIDE), 0, stream>>>(shape, a, b, c);
  return hipGetLastError();
}
