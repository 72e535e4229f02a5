// items=256 group=64 input=256 output=256 stack=4096
// Function pointers, recursion, and arrays on the stack.
#include "twin.h"
#define GROUP 64
typedef u32 (*function)(u32, u32);
DEVICE __attribute__((noinline)) u32 add(u32 a, u32 b) { return a + b; }
DEVICE __attribute__((noinline)) u32 twist(u32 a, u32 b) { return mix(a) ^ (b << 3); }
DEVICE __attribute__((noinline)) u32 power(u32 a, u32 b) { u32 r = 1; for (u32 k = 0; k < (b & 31); ++k) r *= a; return r; }
DEVICE __attribute__((noinline)) u32 recursive(u32 n, u32 x) {
    u32 local[4] = {n, x, n ^ x, n + x};
    if (n < 2) return local[x & 3];
    return recursive(n - 1, mix(x)) + local[(x >> 5) & 3] * recursive(n - 2, x + 1);
}
DEVICE void item(u32 id, const u32 *in, u32 *out, u32) {
    function table[3] = {add, twist, power};
    u32 history[32];
    u32 value = in[id];
    for (u32 k = 0; k < 32; ++k) {
        value = table[value % 3](value, k + id);
        history[(value ^ k) & 31] = value;
        history[k] = value + k;
    }
    for (u32 k = 0; k < 32; ++k) value = value * 33 + history[k];
    out[id] = value + recursive(6 + (id & 3), value);
}
ITEM_KERNEL
MAIN
