// items=1024 group=128 input=1024 output=1024
// Neighbours and distant places of LDS: accesses with two addresses where the target has them.
#include "twin.h"
#define GROUP 128
#ifdef __HIP__
KERNEL {
    SHARED static u32 values[GROUP * 4 + 8];
    SHARED static u64 wide[GROUP * 2 + 4];
    u32 l = local_id(), id = group_id() * GROUP + l;
    u32 value = in[id];
    values[l] = value, values[l + GROUP] = mix(value), values[l + 2 * GROUP] = value * 3, values[l + 3 * GROUP] = value ^ l;
    wide[l] = (u64)value << 20 | l, wide[l + GROUP] = (u64)mix(value + 1) * value;
    barrier();
    u32 o = (l * 7 + 3) & (GROUP - 1), n = (l + 1) & (GROUP - 1);
    u32 sum = values[o] + 3 * values[o + GROUP] + 5 * values[n + 2 * GROUP] + 7 * values[n + 3 * GROUP];
    u64 w = wide[o] + 11 * wide[o + GROUP];
    barrier();
    values[l] = sum, values[l + 64 * 4] = sum + 1;
    barrier();
    if (id < items) out[id] = sum ^ (u32)w ^ (u32)(w >> 32) ^ values[n] ^ values[o + 64 * 4];
}
#else
static void host(const u32 *in, u32 *out, u32 items) {
    for (u32 group = 0; group < items / GROUP; ++group) {
        u32 values[GROUP * 4], sums[GROUP];
        u64 wide[GROUP * 2], ws[GROUP];
        for (u32 l = 0; l < GROUP; ++l) {
            u32 value = in[group * GROUP + l];
            values[l] = value, values[l + GROUP] = mix(value), values[l + 2 * GROUP] = value * 3, values[l + 3 * GROUP] = value ^ l;
            wide[l] = (u64)value << 20 | l, wide[l + GROUP] = (u64)mix(value + 1) * value;
        }
        for (u32 l = 0; l < GROUP; ++l) {
            u32 o = (l * 7 + 3) & (GROUP - 1), n = (l + 1) & (GROUP - 1);
            sums[l] = values[o] + 3 * values[o + GROUP] + 5 * values[n + 2 * GROUP] + 7 * values[n + 3 * GROUP];
            ws[l] = wide[o] + 11 * wide[o + GROUP];
        }
        for (u32 l = 0; l < GROUP; ++l) {
            u32 o = (l * 7 + 3) & (GROUP - 1), n = (l + 1) & (GROUP - 1);
            out[group * GROUP + l] = sums[l] ^ (u32)ws[l] ^ (u32)(ws[l] >> 32) ^ sums[n] ^ (sums[o] + 1);
        }
    }
}
#endif
MAIN
