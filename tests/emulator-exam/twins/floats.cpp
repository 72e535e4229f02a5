// items=1024 group=256 input=2048 output=16384
#include "twin.h"
#define GROUP 256
DEVICE u32 bits(float x) { u32 u; __builtin_memcpy(&u, &x, 4); return x != x ? 0x7fc00000u : u; }
DEVICE float of(u32 u) { float x; __builtin_memcpy(&x, &u, 4); return x; }
DEVICE u64 bits64(double x) { u64 u; __builtin_memcpy(&u, &x, 8); return x != x ? 0x7ff8000000000000ul : u; }
DEVICE double of64(u64 u) { double x; __builtin_memcpy(&x, &u, 8); return x; }
DEVICE void item(u32 id, const u32 *in, u32 *out, u32) {
    u32 *o = out + 16 * id;
    float a = of(in[2 * id]), b = of(in[2 * id + 1]);
    // Some numbers of ordinary size as well: random bits are mostly very large or very small.
    if (id & 1) a = (float)(i32)in[2 * id] / 1024.0f, b = (float)(i32)(in[2 * id + 1] & 0xffff) - 300.5f;
    o[0] = bits(a + b);
    o[1] = bits(a - b);
    o[2] = bits(a * b);
    o[3] = bits(a / b);
    o[4] = bits(__builtin_fmaf(a, b, a));
    o[5] = bits(__builtin_floorf(a)) ^ bits(__builtin_ceilf(b)) ^ bits(__builtin_truncf(a)) ^ bits(__builtin_rintf(b));
    o[6] = (a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a >= b) << 4 | (a > b) << 5 | !(a < b) << 6;
    o[7] = bits(__builtin_fabsf(a)) ^ bits(__builtin_copysignf(b, a));
    double c = of64((u64)in[2 * id] << 32 | mix(in[2 * id + 1])), d = (double)b * 1.25 + 3.0;
    if (id & 1) c = (double)a * 1.0000001;
    u64 r[5] = {bits64(c + d), bits64(c * d), bits64(c / d), bits64(__builtin_fma(c, d, d)), bits64(__builtin_floor(c))};
    u64 all = 0;
    for (int k = 0; k < 4; ++k) { o[8 + k] = (u32)r[k] ^ (u32)(r[k] >> 32); all = all * 31 + r[k]; }
    o[12] = bits((float)c) ^ (u32)(r[4] >> 7) ^ (c < d) ^ (u32)(all >> 40);
    // Conversions within the range of the result: others are undefined in C.
    float f = (float)(in[2 * id] & 0x3fffffff) * 1.37f;
    o[13] = (u32)(i32)f ^ (u32)f ^ (u32)(i32)((double)f / 3.0);
    o[14] = bits((float)(i32)in[2 * id]) ^ bits((float)in[2 * id + 1]) ^ bits((float)(u64)((u64)in[2 * id] * in[2 * id + 1]));
    o[15] = (u32)bits64((double)(i64)((u64)in[2 * id] << 21 ^ in[2 * id + 1])) ^ (u32)(i64)((double)f * 1000.0);
}
ITEM_KERNEL
MAIN
