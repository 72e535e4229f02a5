// The last step of both kernels: what becomes of an element's sum.
//
// With relocatable device code (GEMM_RDC) it is a device function of a translation unit of its own,
// and the device link brings it and the kernels together; otherwise each kernel has its own copy.
#pragma once

#include <hip/hip_runtime.h>

__device__ inline float combine(float sum, float old, float alpha, float beta) {
  // beta == 0 must ignore C, which may be uninitialised and so hold NaN.
  return beta == 0.0f ? alpha * sum : alpha * sum + beta * old;
}

#ifdef GEMM_RDC
__device__ float epilogue(float sum, float old, float alpha, float beta);
#else
__device__ inline float epilogue(float sum, float old, float alpha, float beta) {
  return combine(sum, old, alpha, beta);
}
#endif
