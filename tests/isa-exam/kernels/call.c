// Calls: through pointers, recursive, with a stack; scratch memory with an index known at run time only.
#include "device.h"

NOINLINE u32 twice(u32 x) { return x * 2; }
NOINLINE u32 square(u32 x) { return x * x; }
NOINLINE u32 many(u32 a, u32 b, u64 c, double d, float e, uint4 f, u32 *g) {
    *g += a;
    return a + b + (u32)c + (u32)d + (u32)e + f.x + f.w;
}

typedef u32 (*function)(u32);

KERNEL void pointers(GLOBAL u32 *out, u32 which) {
    function all[2] = {twice, square};
    out[item()] = all[which & 1](lane());
}

NOINLINE u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

KERNEL void recursion(GLOBAL u32 *out) { out[item()] = fibonacci(lane() & 15); }

KERNEL void arguments(GLOBAL u32 *out, double d, float e) {
    u32 local = lane();
    uint4 four = {1, 2, local, 4};
    out[item()] = many(local, 7, 1ul << 40, d, e, four, &local) + local;
}

KERNEL void scratch(GLOBAL u32 *out, GLOBAL const u32 *in, u32 n) {
    u32 stack[64];
    u32 depth = 0;
    for (u32 at = 0; at < n; ++at) {
        if (in[at] & 1 && depth)
            out[at] = stack[--depth & 63];
        else
            stack[depth++ & 63] = in[at];
    }
    u8 bytes[40];
    for (u32 at = 0; at < 40; ++at)
        bytes[at] = (u8)(in[at] >> at % 24);
    out[n] = bytes[lane() % 40] + stack[lane() & 63];
}

KERNEL void dynamic_stack(GLOBAL u32 *out, u32 n) {
    u32 *line = __builtin_alloca(n * 4);
    for (u32 at = 0; at < n; ++at)
        line[at] = at * lane();
    out[item()] = line[lane() % n];
}
