// items=1000 group=128 input=2000 output=1000
#include "twin.h"
#define GROUP 128
DEVICE float of(u32 x) { return (float)(i32)(x & 0xffff) / 17.0f - 1000.0f; }
DEVICE void item(u32 id, const u32 *in, u32 *out, u32 items) {
    float y = 2.5f * of(in[id]) + of(in[items + id]);
    __builtin_memcpy(&out[id], &y, 4);
}
ITEM_KERNEL
MAIN
