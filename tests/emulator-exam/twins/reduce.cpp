// items=2048 group=256 input=2048 output=2056
// A scan of each work-group through LDS, and its sum.
#include "twin.h"
#define GROUP 256
#ifdef __HIP__
KERNEL {
    SHARED static u32 values[2][GROUP];
    u32 id = group_id() * GROUP + local_id(), at = 0;
    values[0][local_id()] = in[id];
    barrier();
    for (u32 step = 1; step < GROUP; step *= 2) {
        u32 value = values[at][local_id()];
        if (local_id() >= step) value += values[at][local_id() - step];
        values[1 - at][local_id()] = value;
        at = 1 - at;
        barrier();
    }
    out[id] = values[at][local_id()];
    if (local_id() == GROUP - 1) out[items + group_id()] = values[at][local_id()];
}
#else
static void host(const u32 *in, u32 *out, u32 items) {
    for (u32 group = 0; group < items / GROUP; ++group) {
        u32 sum = 0;
        for (u32 k = 0; k < GROUP; ++k) out[group * GROUP + k] = sum += in[group * GROUP + k];
        out[items + group] = sum;
    }
}
#endif
MAIN
