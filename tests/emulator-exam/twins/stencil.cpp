// items=4096 group=64 input=4096 output=4096
#include "twin.h"
#define GROUP 64
#define W 64
DEVICE float of(u32 x) { return (float)(x & 0x3ff) * 0.125f; }
DEVICE void item(u32 id, const u32 *in, u32 *out, u32) {
    i32 x = (i32)(id % W), y = (i32)(id / W);
    float sum = 0;
    for (i32 dy = -2; dy <= 2; ++dy)
        for (i32 dx = -2; dx <= 2; ++dx) {
            i32 px = x + dx, py = y + dy;
            if (px < 0 || py < 0 || px >= W || py >= W) continue;
            float weight = dx == 0 && dy == 0 ? 8.0f : 1.0f;
            sum += weight * of(in[py * W + px]);
        }
    __builtin_memcpy(&out[id], &sum, 4);
}
ITEM_KERNEL
MAIN
