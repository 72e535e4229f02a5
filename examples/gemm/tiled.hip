// The product with tiles in LDS: each element of A and B is read from global memory once a tile.
#include "epilogue.h"
#include "gemm.h"

namespace {

constexpr unsigned SIDE = 16;

__global__ void tiled(GemmShape shape, const float *a, const float *b, float *c) {
  __shared__ float tile_a[SIDE][SIDE];
  __shared__ float tile_b[SIDE][SIDE];
  const unsigned x = threadIdx.x;
  const unsigned y = threadIdx.y;
  const unsigned row = blockIdx.y * SIDE + y;
  const unsigned column = blockIdx.x * SIDE + x;
  float sum = 0.0f;
  for (unsigned start = 0; start < shape.inner; start += SIDE) {
    // Threads outside of C still load (zeros): all threads of a block must reach the barriers.
    const bool in_a = row < shape.rows && start + x < shape.inner;
    const bool in_b = start + y < shape.inner && column < shape.columns;
    tile_a[y][x] = in_a ? a[size_t(row) * shape.inner + start + x] : 0.0f;
    tile_b[y][x] = in_b ? b[size_t(start + y) * shape.columns + column] : 0.0f;
    __syncthreads();
    for (unsigned k = 0; k < SIDE; ++k)
      sum += tile_a[y][k] * tile_b[k][x];
    __syncthreads();
  }
  if (row >= shape.rows || column >= shape.columns)
    return;
  float &out = c[size_t(row) * shape.columns + column];
  out = epilogue(sum, out, shape.alpha, shape.beta);
}

} // namespace

hipError_t gemm_tiled(const GemmShape &shape, const float *a, const float *b, float *c, hipStream_t stream) {
  const dim3 blocks((shape.columns + SIDE - 1) / SIDE, (shape.rows + SIDE - 1) / SIDE);
  tiled<<<blocks, dim3(SIDE, SIDE), 0, stream>>>(shape, a, b, c);
  return hipGetLastError();
}
