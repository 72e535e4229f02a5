// items=1024 group=128 input=1024 output=64
#include "twin.h"
#define GROUP 128
#ifdef __HIP__
#define ADD(p, v) __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#define MAX(p, v) __hip_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#define OR(p, v) __hip_atomic_fetch_or(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#define XOR(p, v) __hip_atomic_fetch_xor(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
#else
#define ADD(p, v) (*(p) += (v))
#define MAX(p, v) (*(p) = *(p) > (v) ? *(p) : (v))
#define OR(p, v) (*(p) |= (v))
#define XOR(p, v) (*(p) ^= (v))
#endif
DEVICE void item(u32 id, const u32 *in, u32 *out, u32) {
    u32 value = in[id];
    ADD(&out[value & 15], 1u);
    MAX(&out[16 + (value & 7)], value);
    OR(&out[24], 1u << (value >> 27));
    XOR(&out[25], value);
    ADD((u64 *)&out[26], (u64)value);
    ADD((u64 *)&out[28], (u64)value << 20);
    MAX((i32 *)&out[30], (i32)value);
#ifdef __HIP__
    u32 old = __hip_atomic_load(&out[31], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    while (!__hip_atomic_compare_exchange_weak(&out[31], &old, old + (value & 255), __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {}
#else
    out[31] += value & 255;
#endif
}
ITEM_KERNEL
MAIN
