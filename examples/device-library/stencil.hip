#include "stencil.h"

__device__ __attribute__((noinline)) float stencil(const float *line, int distance, float weight) {
  float value[96], sum = 0;
#pragma unroll
  for (int i = 0; i < 96; ++i)
    value[i] = line[i * distance];
#pragma unroll
  for (int i = 0; i < 96; ++i)
    sum += value[i] * value[95 - i] + value[(i * 7) % 96] * weight;
#pragma unroll
  for (int i = 0; i < 96; ++i)
    sum = sum * value[i] + value[(i * 13) % 96];
  return sum;
}
