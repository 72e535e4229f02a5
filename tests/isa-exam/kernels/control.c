// Control flow and what reads the wave's own state.
#include "device.h"

KERNEL void choice(GLOBAL u32 *out, u32 which) {
    u32 x = out[item()];
    switch (which) {
    case 0: x += 1; break;
    case 1: x *= 77; break;
    case 2: x ^= lane(); break;
    case 5: x = x << 3 | x >> 7; break;
    case 9: x = ~x; break;
    case 11: return;
    default: x = 0x12345678;
    }
    out[item()] = x;
}

KERNEL void divergent(GLOBAL u32 *out, GLOBAL const u32 *in) {
    u32 x = in[item()];
    switch (x & 7) {
    case 0: x += 1; break;
    case 1: x *= 77; // fall through
    case 2: x ^= lane(); break;
    case 3:
        for (u32 at = 0; at < x; ++at)
            if (in[at] == x)
                goto found;
        x = 0;
    found:
        break;
    default:
        if (x > 1000)
            __builtin_trap();
    }
    out[item()] = x;
}

KERNEL void state(GLOBAL u64 *out) {
    out[0] = __builtin_readcyclecounter();
    out[1] = __builtin_amdgcn_read_exec();
    out[2] = __builtin_amdgcn_s_getreg(0x1801);
    __builtin_amdgcn_s_setprio(3);
    __builtin_amdgcn_s_setreg(0x0801, 3);
    __builtin_amdgcn_sched_barrier(0);
    out[3] = (u64)__builtin_amdgcn_dispatch_ptr();
    __builtin_amdgcn_s_sleep(1);
}

KERNEL void nothing(void) {}

KERNEL void assembly(GLOBAL u32 *out) {
    u32 x;
    __asm__ volatile("v_mov_b32 %0, 0x12345678\n\ts_nop 3" : "=v"(x));
    out[item()] = x;
}
