// Sorting, scanning and reducing: LDS, cross-lane moves, ballots.
#include "device.h"

KERNEL void bitonic(GLOBAL u32 *data) {
    LOCAL u32 line[256];
    u32 at = lane();
    line[at] = data[item()];
    for (u32 size = 2; size <= 256; size *= 2)
        for (u32 way = size / 2; way; way /= 2) {
            barrier();
            u32 other = at ^ way;
            if (other > at && (line[at] > line[other]) == !(at & size)) {
                u32 kept = line[at];
                line[at] = line[other];
                line[other] = kept;
            }
        }
    barrier();
    data[item()] = line[at];
}

KERNEL void histogram(GLOBAL u32 *out, GLOBAL const u8 *in, u32 n) {
    LOCAL u32 count[256];
    count[lane()] = 0;
    barrier();
    for (u32 at = item(); at < n; at += 65536)
        __atomic_fetch_add(&count[in[at]], 1, __ATOMIC_RELAXED);
    barrier();
    __atomic_fetch_add(&out[lane()], count[lane()], __ATOMIC_RELAXED);
}

#define MOVE(value, control) __builtin_amdgcn_update_dpp(0, value, control, 0xf, 0xf, 0)

KERNEL void scan(GLOBAL int *data) {
    int value = data[item()];
    value += MOVE(value, 0x111);
    value += MOVE(value, 0x112);
    value += MOVE(value, 0x114);
    value += MOVE(value, 0x118);
    value += MOVE(value, 0xb1);
    value += __builtin_amdgcn_ds_bpermute(4 * (lane() - 16), value);
    value += __builtin_amdgcn_readlane(value, 15) + __builtin_amdgcn_readfirstlane(value);
    value += __builtin_amdgcn_ds_swizzle(value, 0x041f);
    data[item()] = __builtin_amdgcn_mov_dpp(value, 0x140, 0x5, 0xa, 1);
}

KERNEL void compact(GLOBAL u32 *out, GLOBAL const u32 *in, u32 limit) {
    int take = in[item()] < limit;
    u64 mask = __builtin_amdgcn_ballot_w64(take);
    u32 before = __builtin_amdgcn_mbcnt_hi((u32)(mask >> 32), __builtin_amdgcn_mbcnt_lo((u32)mask, 0));
    if (take)
        out[before] = in[item()];
    if (lane() == 0)
        out[1000] = __builtin_popcountl(mask);
}

KERNEL void reduce(GLOBAL float *out, GLOBAL const float *in, u32 n) {
    LOCAL float part[256];
    float sum = 0;
    for (u32 at = item(); at < n; at += 65536)
        sum += in[at];
    part[lane()] = sum;
    for (u32 half_size = 128; half_size; half_size /= 2) {
        barrier();
        if (lane() < half_size)
            part[lane()] += part[lane() + half_size];
    }
    if (lane() == 0)
        out[group()] = part[0];
}
