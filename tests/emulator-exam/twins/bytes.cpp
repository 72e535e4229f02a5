// items=512 group=64 input=512 output=1024
// Bytes and short numbers in memory and on the stack; unaligned accesses.
#include "twin.h"
#define GROUP 64
struct __attribute__((packed)) Odd { u8 a; u16 b; u32 c; u64 d; };
DEVICE void item(u32 id, const u32 *in, u32 *out, u32) {
    const u8 *bytes = (const u8 *)in;
    u8 local[64];
    for (u32 k = 0; k < 64; ++k) local[k] = (u8)(bytes[(id * 4 + k * 7) & 2047] + k);
    u32 sum = 0;
    for (u32 k = 0; k < 16; ++k) {
        u16 two;
        u32 four;
        __builtin_memcpy(&two, local + k * 3, 2);
        __builtin_memcpy(&four, local + k * 3 + 1, 4);
        sum = sum * 31 + two + four + (u32)(i32)(i8)local[k * 4] + (u32)(i32)((const i16 *)in)[(id + k * 5) & 1023];
    }
    Odd odd = {(u8)sum, (u16)(sum >> 3), sum * 7, (u64)sum * sum};
    u8 raw[sizeof(Odd)];
    __builtin_memcpy(raw, &odd, sizeof odd);
    u32 hash = 0;
    for (u32 k = 0; k < sizeof odd; ++k) hash = mix(hash ^ raw[k]);
    out[2 * id] = sum;
    u8 *target = (u8 *)&out[2 * id + 1];
    target[0] = (u8)hash, target[3] = (u8)(hash >> 8);
    __builtin_memcpy(target + 1, &sum, 2);
}
ITEM_KERNEL
MAIN
