// items=256 group=256 input=256 output=256
// One work-group sorts by four bits at a time.
#include "twin.h"
#define GROUP 256
#ifdef __HIP__
KERNEL {
    SHARED static u32 keys[GROUP], sums[GROUP];
    u32 id = local_id();
    keys[id] = in[id];
    barrier();
    for (u32 bit = 0; bit < 32; ++bit) {
        u32 key = keys[id], zero = ~(key >> bit) & 1;
        sums[id] = zero;
        barrier();
        for (u32 step = 1; step < GROUP; step *= 2) {
            u32 add = id >= step ? sums[id - step] : 0;
            barrier();
            sums[id] += add;
            barrier();
        }
        u32 zeros = sums[GROUP - 1];
        u32 place = zero ? sums[id] - 1 : zeros + id - sums[id];
        barrier();
        keys[place] = key;
        barrier();
    }
    if (id < items) out[id] = keys[id];
}
#else
static int order(const void *a, const void *b) { u32 x = *(const u32 *)a, y = *(const u32 *)b; return x < y ? -1 : x > y; }
static void host(const u32 *in, u32 *out, u32 items) { memcpy(out, in, 4 * items); qsort(out, items, 4, order); }
#endif
MAIN
