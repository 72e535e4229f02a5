// items=1024 group=256 input=1024 output=1028
// Inclusive sums of each work-group, and the sum of each.
#include "twin.h"
#define GROUP 256
#ifdef __HIP__
KERNEL {
    SHARED static u32 sums[GROUP];
    u32 lane = local_id(), id = group_id() * GROUP + lane;
    sums[lane] = id < items ? in[id] : 0;
    barrier();
    for (u32 step = 1; step < GROUP; step *= 2) {
        u32 add = lane >= step ? sums[lane - step] : 0;
        barrier();
        sums[lane] += add;
        barrier();
    }
    if (id < items) out[id] = sums[lane];
    if (lane == GROUP - 1) out[1024 + group_id()] = sums[lane];
}
#else
static void host(const u32 *in, u32 *out, u32 items) {
    for (u32 id = 0; id < items; ++id) {
        out[id] = in[id] + (id % GROUP ? out[id - 1] : 0);
        if (id % GROUP == GROUP - 1) out[1024 + id / GROUP] = out[id];
    }
}
#endif
MAIN
