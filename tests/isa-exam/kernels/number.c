// Arithmetic of all types: halves, doubles, wide integers, bits, dot products, conversions.
#include "device.h"

KERNEL void halves(GLOBAL half *out, GLOBAL const half *in, half a) {
    half x = in[item()];
    half y = __builtin_fmaf16(x, a, (half)0.5f);
    y = __builtin_sqrtf16(y > 0 ? y : -y) + __builtin_floorf16(x) / a;
    out[item()] = __builtin_fmaxf16(x, y);
}

KERNEL void doubles(GLOBAL double *out, GLOBAL const double *in, double a) {
    double x = in[item()];
    out[item()] = __builtin_sqrt(x * x + a) / (x + 1.0) + __builtin_fma(x, a, 3.25) + __builtin_trunc(x);
}

KERNEL void divisions(GLOBAL u32 *a, GLOBAL u64 *b, GLOBAL float *c, u32 d) {
    a[item()] = a[item()] / d + a[lane()] % 7;
    ((GLOBAL long *)b)[item()] = ((GLOBAL long *)b)[item()] / (long)(d + 1);
    b[lane()] = b[lane()] % 1000003;
    c[item()] = c[item()] / c[lane()];
}

KERNEL void bits(GLOBAL u32 *out, GLOBAL const u32 *in, GLOBAL u64 *wide) {
    u32 x = in[item()], y = in[lane()];
    u32 sum = __builtin_popcount(x) + __builtin_clz(x | 1) + __builtin_ctz(x | 16) + __builtin_bitreverse32(x);
    sum += (x >> 5 & 0xff) + __builtin_rotateleft32(x, y) + (x & ~y | ~x & y) + __builtin_amdgcn_alignbit(x, y, 3);
    sum += __builtin_amdgcn_perm(x, y, 0x05010400) + __builtin_amdgcn_ubfe(x, y & 7, 9) + __builtin_amdgcn_sad_u8(x, y, 1);
    out[item()] = sum;
    wide[item()] = wide[item()] << (x & 63) | wide[lane()] >> 11;
}

KERNEL void conversions(GLOBAL float *f, GLOBAL double *d, GLOBAL half *h, GLOBAL int *i, GLOBAL u8 *b) {
    f[item()] = (float)i[item()] + (float)b[item()] + (float)h[item()] + (float)d[item()];
    d[item()] = (double)(u32)i[item()] + (double)f[lane()];
    i[item()] = (int)d[lane()] + (int)f[lane()] + (int)__builtin_rintf(f[item()]);
    h[item()] = (half)f[item()];
    ((GLOBAL long *)d)[lane()] = (long)f[item()];
}

KERNEL void mixed(GLOBAL float *out, GLOBAL const half2 *a, GLOBAL const half2 *b) {
    float sum = out[item()];
    for (int at = 0; at < 8; ++at)
        sum += (float)a[at].x * (float)b[at].x + (float)a[at].y * (float)b[at].y;
    out[item()] = sum;
}

KERNEL void dots(GLOBAL int *out, GLOBAL const int *a, GLOBAL const int *b) {
    int sum = 0;
    for (int at = 0; at < 8; ++at) {
#if defined(__gfx906__) || defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__) || defined(__gfx1030__)
        sum = __builtin_amdgcn_sdot4(a[at], b[at], sum, 0);
#elif defined(__gfx1100__) || defined(__gfx1201__)
        sum = __builtin_amdgcn_sudot4(1, a[at], 0, b[at], sum, 1);
#else
        sum += (a[at] & 255) * (b[at] & 255);
#endif
    }
    out[item()] = sum;
}

KERNEL void special(GLOBAL float *out, GLOBAL const float *in) {
    float x = in[item()];
    float y = __builtin_amdgcn_rcpf(x) + __builtin_amdgcn_logf(x) + __builtin_amdgcn_fmed3f(x, 1, 4);
    y += __builtin_amdgcn_fractf(x) + __builtin_amdgcn_ldexpf(x, 3) + __builtin_amdgcn_frexp_mantf(x);
    out[item()] = __builtin_amdgcn_class(y, 0x3) ? -__builtin_fabsf(y) : __builtin_amdgcn_exp2f(y);
}
