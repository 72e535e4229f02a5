// Fourier transform, Mandelbrot set, Collatz: floats, trigonometry, divergent loops.
#include "device.h"

static inline float2 multiply(float2 a, float2 b) { return (float2){a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }

KERNEL void fft(GLOBAL float2 *data) {
    LOCAL float2 line[256];
    u32 at = lane();
    line[at] = data[__builtin_bitreverse32(at) >> 24];
    barrier();
    for (u32 half_size = 1; half_size < 256; half_size *= 2) {
        u32 k = at & (half_size - 1), base = (at / half_size) * half_size * 2 + k;
        if (base + half_size < 256) {
            float turn = -0.5f * (float)k / (float)half_size;
            float2 twist = {__builtin_amdgcn_cosf(turn), __builtin_amdgcn_sinf(turn)};
            float2 even = line[base], odd = multiply(line[base + half_size], twist);
            line[base] = even + odd;
            line[base + half_size] = even - odd;
        }
        barrier();
    }
    data[at] = line[at];
}

KERNEL void mandelbrot(GLOBAL u32 *out, float scale) {
    float x0 = (float)lane() * scale - 2, y0 = (float)row() * scale - 1, x = 0, y = 0;
    u32 steps = 0;
    while (x * x + y * y < 4 && steps < 1000) {
        float next = x * x - y * y + x0;
        y = 2 * x * y + y0;
        x = next;
        ++steps;
    }
    out[item()] = steps;
}

KERNEL void collatz(GLOBAL u64 *out) {
    u64 n = item() + 1, steps = 0;
    for (; n != 1; ++steps)
        n = n & 1 ? 3 * n + 1 : n / 2;
    out[item()] = steps;
}

KERNEL void bodies(GLOBAL float4 *place, GLOBAL float4 *speed, u32 n, float step) {
    LOCAL float4 near[256];
    float4 mine = place[item()], pull = {0, 0, 0, 0};
    for (u32 tile = 0; tile < n; tile += 256) {
        near[lane()] = place[tile + lane()];
        barrier();
        for (u32 at = 0; at < 256; ++at) {
            float4 way = near[at] - mine;
            float square = way.x * way.x + way.y * way.y + way.z * way.z + 1e-6f;
            float root = __builtin_amdgcn_rsqf(square);
            pull += way * (near[at].w * root * root * root);
        }
        barrier();
    }
    speed[item()] += pull * step;
    place[item()] = mine + speed[item()] * step;
}
