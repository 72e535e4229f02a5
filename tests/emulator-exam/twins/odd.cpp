// items=1024 group=128 input=1024 output=1024
// Numbers of 64 bits at addresses that are multiples of 4 only, which the compiler does not know.
#include "twin.h"
#define GROUP 128
#ifdef __HIP__
KERNEL {
    SHARED static u64 wide[GROUP * 2 + 1];
    u32 l = local_id(), id = group_id() * GROUP + l;
    u64 *odd = (u64 *)((u8 *)wide + (items >> 8 & 4));
    odd[l] = (u64)in[id] << 13 | l, odd[l + GROUP] = (u64)mix(in[id]) * 77;
    barrier();
    u32 o = (l * 7 + 3) & (GROUP - 1);
    u64 w = odd[o] + 11 * odd[o + GROUP];
    if (id < items) out[id] = (u32)w ^ (u32)(w >> 32);
}
#else
static void host(const u32 *in, u32 *out, u32 items) {
    for (u32 id = 0; id < items; ++id) {
        u32 l = id % GROUP, o = (l * 7 + 3) & (GROUP - 1), value = in[id - l + o];
        u64 w = ((u64)value << 13 | o) + 11 * ((u64)mix(value) * 77);
        out[id] = (u32)w ^ (u32)(w >> 32);
    }
}
#endif
MAIN
