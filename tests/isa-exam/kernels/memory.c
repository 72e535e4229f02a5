// Loads and stores of every width, gathers, transposition through LDS.
#include "device.h"

KERNEL void copy(GLOBAL u32 *out, GLOBAL const u32 *in) { out[item()] = in[item()]; }

KERNEL void saxpy(GLOBAL float *y, GLOBAL const float *x, float a) { y[item()] = a * x[item()] + y[item()]; }

KERNEL void widths(GLOBAL void *out, GLOBAL const void *in, u32 n) {
    u32 at = item();
    ((GLOBAL u8 *)out)[at] = ((GLOBAL const u8 *)in)[at + 1] + 1;
    ((GLOBAL short *)out)[at + n] = ((GLOBAL const signed char *)in)[at + 3];
    ((GLOBAL u16 *)out)[at + 2 * n] = ((GLOBAL const u16 *)in)[at + n] << 3;
    ((GLOBAL u64 *)out)[at + n] = ((GLOBAL const u64 *)in)[at] * 3;
    ((GLOBAL uint4 *)out)[at + n] = ((GLOBAL const uint4 *)in)[at] + ((GLOBAL const uint4 *)in)[at + 17];
}

KERNEL void gather(GLOBAL float *out, GLOBAL const float *in, GLOBAL const int *index, u64 stride) {
    out[item()] = in[index[item()] * stride];
}

KERNEL void transpose(GLOBAL float *out, GLOBAL const float *in, u32 width) {
    LOCAL float tile[32][33];
    u32 x = group() * 32 + lane();
    for (u32 y = row(); y < 32; y += 8)
        tile[y][lane()] = in[y * width + x];
    barrier();
    for (u32 y = row(); y < 32; y += 8)
        out[(group() * 32 + y) * width + lane()] = tile[lane()][y];
}

KERNEL void table(GLOBAL u32 *out, CONSTANT const u32 *values, u32 scale) {
    u32 sum = 0;
    for (u32 at = 0; at < 16; ++at)
        sum += values[at] * scale;
    out[item()] = sum + values[group()];
}

KERNEL void flat(u32 *out, SHARED u32 *near, GLOBAL u32 *far, int which) {
    u32 *pointer = which & 1 ? (u32 *)near : (u32 *)far;
    out[lane()] = pointer[lane()] + *(volatile u32 *)(pointer + 1000);
}

KERNEL void nontemporal(GLOBAL float4 *out, GLOBAL const float4 *in) {
    __builtin_nontemporal_store(__builtin_nontemporal_load(in + item()), out + item());
}
