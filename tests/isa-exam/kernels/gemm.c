// Matrix products without matrix instructions.
#include "device.h"

KERNEL void gemm_plain(GLOBAL float *c, GLOBAL const float *a, GLOBAL const float *b, u32 n) {
    float sum = 0;
    for (u32 k = 0; k < n; ++k)
        sum += a[row() * n + k] * b[k * n + lane()];
    c[row() * n + lane()] = sum;
}

KERNEL void gemm_tiled(GLOBAL float *c, GLOBAL const float *a, GLOBAL const float *b, u32 n) {
    LOCAL float left[16][16], right[16][16];
    u32 x = lane(), y = row();
    float sum = 0;
    for (u32 k = 0; k < n; k += 16) {
        left[y][x] = a[(group() * 16 + y) * n + k + x];
        right[y][x] = b[(k + y) * n + x];
        barrier();
#pragma unroll
        for (u32 i = 0; i < 16; ++i)
            sum = __builtin_fmaf(left[y][i], right[i][x], sum);
        barrier();
    }
    c[(group() * 16 + y) * n + x] = sum;
}

KERNEL void gemm_double(GLOBAL double *c, GLOBAL const double *a, GLOBAL const double *b, u32 n) {
    double sums[4] = {0, 0, 0, 0};
    for (u32 k = 0; k < n; ++k)
        for (u32 i = 0; i < 4; ++i)
            sums[i] += a[k * n + lane() * 4 + i] * b[k];
    for (u32 i = 0; i < 4; ++i)
        c[lane() * 4 + i] = sums[i];
}

KERNEL void gemm_half(GLOBAL half2 *c, GLOBAL const half2 *a, GLOBAL const half2 *b, u32 n) {
    half2 sum = {0, 0};
    for (u32 k = 0; k < n; ++k)
        sum += a[k * n + lane()] * b[k];
    c[lane()] = sum;
}
