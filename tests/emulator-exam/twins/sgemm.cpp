// items=1024 group=256 input=2048 output=1024
// Tiles of 16 x 16 through LDS.
#include "twin.h"
#define GROUP 256
#define N 32
DEVICE float of(u32 x) { return (float)(i32)(x & 0xff) - 128.0f; }
#ifdef __HIP__
KERNEL {
    SHARED static float a[16][17], b[16][17];
    u32 x = local_id() & 15, y = local_id() >> 4, column = (group_id() & 1) * 16 + x, row = (group_id() >> 1) * 16 + y;
    float sum = 0;
    for (u32 tile = 0; tile < N; tile += 16) {
        a[y][x] = of(in[row * N + tile + x]);
        b[y][x] = of(in[N * N + (tile + y) * N + column]);
        barrier();
        for (u32 k = 0; k < 16; ++k) sum += a[y][k] * b[k][x];
        barrier();
    }
    u32 bits;
    __builtin_memcpy(&bits, &sum, 4);
    if (row * N + column < items) out[row * N + column] = bits;
}
#else
static void host(const u32 *in, u32 *out, u32) {
    for (u32 row = 0; row < N; ++row)
        for (u32 column = 0; column < N; ++column) {
            float sum = 0;
            for (u32 k = 0; k < N; ++k) sum += of(in[row * N + k]) * of(in[N * N + k * N + column]);
            memcpy(&out[row * N + column], &sum, 4);
        }
}
#endif
MAIN
