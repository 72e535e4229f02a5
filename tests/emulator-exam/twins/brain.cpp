// items=65536 group=256 input=65536 output=131072
// All brain floats as a source; denormals of 32 bits are left out, which some processors round to 0.
#include "twin.h"
#define GROUP 256
DEVICE u32 bits(__bf16 x) { u16 u; __builtin_memcpy(&u, &x, 2); return (u & 0x7fff) > 0x7f80 ? 0x7fc0u : u; }
DEVICE void item(u32 id, const u32 *in, u32 *out, u32) {
    u16 code = (u16)id;
    __bf16 a;
    __builtin_memcpy(&a, &code, 2);
    float wide = (float)a, other;
    u32 word, raw = in[id] & 0x7f800000u ? in[id] : in[id] | 0x3f800000u;
    __builtin_memcpy(&word, &wide, 4);
    __builtin_memcpy(&other, &raw, 4);
    out[2 * id] = wide != wide ? 1 : word;
    // Every upper half with a lower one that is below, at or above the middle.
    u32 near = (id << 16 | (id % 3 == 0 ? 0x8000u : id % 3 == 1 ? 0x7fffu : 0x8001u)) | (id & 0x7f80 ? 0u : 0x3f800000u);
    float value;
    __builtin_memcpy(&value, &near, 4);
    out[2 * id + 1] = bits((__bf16)value) | bits((__bf16)other) << 16;
}
ITEM_KERNEL
MAIN
