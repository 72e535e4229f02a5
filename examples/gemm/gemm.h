// C = alpha * A * B + beta * C for row-major float matrices, in two kernels.
#pragma once

#include <hip/hip_runtime.h>

/// Sizes and scalars of one product. A is rows × inner, B is inner × columns, C is rows × columns.
struct GemmShape {
  unsigned rows;
  unsigned columns;
  unsigned inner;
  float alpha;
  float beta;
};

/// One thread for each element of C, operands read from global memory. Pointers are device memory.
hipError_t gemm_naive(const GemmShape &shape, const float *a, const float *b, float *c, hipStream_t stream);

/// The same product with tiles of A and B in LDS.
hipError_t gemm_tiled(const GemmShape &shape, const float *a, const float *b, float *c, hipStream_t stream);
