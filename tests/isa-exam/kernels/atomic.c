// Atomics of all widths and orders, in global memory, LDS and through flat pointers.
#include "device.h"

KERNEL void counters(GLOBAL u32 *a, GLOBAL u64 *b, u32 *c) {
    u32 old = __atomic_fetch_add(&a[0], lane(), __ATOMIC_RELAXED);
    old ^= __atomic_fetch_xor(&a[1], old, __ATOMIC_ACQUIRE);
    old |= __atomic_exchange_n(&a[2], old, __ATOMIC_RELEASE);
    old += __atomic_fetch_sub(&c[3], old, __ATOMIC_SEQ_CST);
    __atomic_fetch_and(&b[0], ~(u64)old, __ATOMIC_RELAXED);
    __atomic_fetch_or(&b[1], old, __ATOMIC_ACQ_REL);
    __atomic_fetch_max(&a[4], old, __ATOMIC_RELAXED);
    __atomic_fetch_min((GLOBAL int *)&a[5], (int)old, __ATOMIC_RELAXED);
}

KERNEL void locks(GLOBAL u32 *lock, GLOBAL u64 *wide, GLOBAL u32 *data) {
    u32 free = 0;
    while (!__atomic_compare_exchange_n(&lock[group()], &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        free = 0;
        __builtin_amdgcn_s_sleep(2);
    }
    data[group()] += lane();
    __atomic_store_n(&lock[group()], 0, __ATOMIC_RELEASE);
    u64 seen = 7;
    __atomic_compare_exchange_n(&wide[lane()], &seen, 9, 1, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

KERNEL void floats(GLOBAL float *a, GLOBAL double *b, SHARED float *near) {
    __atomic_fetch_add(&a[0], 1.5f, __ATOMIC_RELAXED);
    __atomic_fetch_add(&b[0], 2.5, __ATOMIC_RELAXED);
    __atomic_fetch_add(&near[lane()], 0.25f, __ATOMIC_RELAXED);
}

KERNEL void near_counters(GLOBAL u32 *out) {
    LOCAL u32 count[4];
    LOCAL u64 wide;
    u32 old = __atomic_fetch_add(&count[lane() & 3], 3, __ATOMIC_RELAXED);
    old += __atomic_fetch_max(&count[1], old, __ATOMIC_ACQ_REL);
    old += __atomic_exchange_n(&count[2], old, __ATOMIC_RELAXED);
    out[item()] = old + (u32)__atomic_fetch_add(&wide, old, __ATOMIC_RELAXED);
}
