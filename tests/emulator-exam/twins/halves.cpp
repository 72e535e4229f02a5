// items=65536 group=256 input=65536 output=262144
// All halves as a source.
#include "twin.h"
#define GROUP 256
typedef _Float16 half;
DEVICE u32 bits(half x) { u16 u; __builtin_memcpy(&u, &x, 2); return x != x ? 0x7e00u : u; }
DEVICE half of(u32 u) { u16 s = (u16)u; half x; __builtin_memcpy(&x, &s, 2); return x; }
DEVICE void item(u32 id, const u32 *in, u32 *out, u32) {
    half a = of(id), b = of(in[id]);
    float f = (float)a, g;
    __builtin_memcpy(&g, &in[id], 4);
    u32 w;
    __builtin_memcpy(&w, &f, 4);
    out[4 * id] = f != f ? 1 : w;
    out[4 * id + 1] = bits((half)(a + b)) | bits((half)(a * b)) << 16;
    out[4 * id + 2] = bits((half)g) | (u32)(a < b) << 16 | (u32)(a == b) << 17;
    out[4 * id + 3] = (u32)(i32)(f == f && f < 1e4f && f > -1e4f ? a : (half)0) ^ bits((half)(i32)(id - 30000));
}
ITEM_KERNEL
MAIN
