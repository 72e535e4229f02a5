// What the twins share: the same source is a program for the host and a kernel for a GPU. A case defines `group`, which
// computes all of a work-group, or `item`, which computes one work-item.
#pragma once
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned u32;
typedef int i32;
typedef unsigned long u64;
typedef long i64;
static_assert(sizeof(u64) == 8, "both sides have longs of 64 bits");

#ifdef __HIP__
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
#define CONSTANT __attribute__((constant))
#else
#define DEVICE static
#define SHARED static
#define CONSTANT static const
#endif

struct Sizes {
    u32 items;   // work-items
    u32 group;   // work-items of a work-group
    u32 input;   // dwords of input
    u32 output;  // dwords of output
};

DEVICE u32 mix(u32 x) {
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}

#ifdef __HIP__
DEVICE inline void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
DEVICE inline u32 local_id() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE inline u32 group_id() { return __builtin_amdgcn_workgroup_id_x(); }
#define KERNEL extern "C" __attribute__((global)) void run(const u32 *in, u32 *out, u32 items)
#define ITEM_KERNEL                                                  \
    KERNEL {                                                         \
        u32 id = group_id() * GROUP + local_id();                    \
        if (id < items) item(id, in, out, items);                    \
    }
#else
#include <cstdio>
#include <cstdlib>
#include <cstring>
#define ITEM_KERNEL \
    static void host(const u32 *in, u32 *out, u32 items) { for (u32 id = 0; id < items; ++id) item(id, in, out, items); }
// Reads ITEMS and the input, writes the output.
#define MAIN                                                                        \
    int main(int, char **words) {                                                   \
        u32 items = (u32)atoi(words[1]), input = (u32)atoi(words[2]), output = (u32)atoi(words[3]); \
        u32 *in = (u32 *)calloc(input + 1, 4), *out = (u32 *)calloc(output + 1, 4); \
        if (fread(in, 4, input, stdin) != input) return 1;                          \
        host(in, out, items);                                                       \
        return fwrite(out, 4, output, stdout) != output;                            \
    }
#endif
#ifdef __HIP__
#define MAIN
#endif
