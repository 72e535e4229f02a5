// items=512 group=64 input=1024 output=16384
#include "twin.h"
#define GROUP 64
DEVICE void item(u32 id, const u32 *in, u32 *out, u32) {
    u32 a = in[2 * id], b = in[2 * id + 1];
    i32 sa = (i32)a, sb = (i32)b;
    u64 wa = (u64)a << 32 | mix(b), wb = (u64)b << 7 | (mix(a) & 0x7f);
    i64 za = (i64)wa, zb = (i64)wb;
    u32 *o = out + 32 * id;
    o[0] = a / (b | 1);
    o[1] = a % (b | 1);
    o[2] = (u32)(sa / ((sb & 0xffff) | 1));
    o[3] = (u32)(sa % ((sb & 0xffff) | 1));
    u64 q = wa / (wb | 1), r = wa % (wb | 1);
    o[4] = (u32)q, o[5] = (u32)(q >> 32), o[6] = (u32)r, o[7] = (u32)(r >> 32);
    i64 zq = za / ((zb >> 20) | 1), zr = za % ((zb >> 20) | 1);
    o[8] = (u32)zq, o[9] = (u32)((u64)zq >> 32), o[10] = (u32)zr, o[11] = (u32)((u64)zr >> 32);
    u64 p = wa * wb;
    o[12] = (u32)p, o[13] = (u32)(p >> 32);
    u64 s = wa << (b & 63), t = wa >> (b & 63);
    i64 v = za >> (b & 63);
    o[14] = (u32)s, o[15] = (u32)(s >> 32), o[16] = (u32)t, o[17] = (u32)(t >> 32), o[18] = (u32)v, o[19] = (u32)((u64)v >> 32);
    o[20] = (u32)__builtin_popcount(a) + (u32)__builtin_popcountll(wa);
    o[21] = (u32)__builtin_clz(a | 1) + (u32)__builtin_ctz(a | 0x80000000u) + (u32)__builtin_clzll(wa | 1);
    o[22] = __builtin_bswap32(a) ^ __builtin_bitreverse32(b);
    u64 d = wa - wb;
    o[23] = (u32)d, o[24] = (u32)(d >> 32);
    o[25] = (wa < wb) | (za < zb) << 1 | (wa == wb) << 2 | (za >= zb) << 3;
    o[26] = (u32)(i32)(i8)a + (u32)(i32)(i16)b + (u8)(a >> 9) + (u16)(b >> 5);
    o[27] = (u32)((u64)a * b >> 32) ^ (u32)((i64)sa * sb >> 32);
    o[28] = (a << (b & 31)) ^ (a >> (b & 31)) ^ (u32)(sa >> (b & 31));
    o[29] = a > b ? a - b : b - a;
    o[30] = (a & 0xffffff) * (b & 0xffffff) + (u16)a * (u16)b;
    u16 h = (u16)((u16)a * (u16)b + (u16)(a >> 3));
    i16 g = (i16)((i16)b / (i16)(((i16)a >> 8) | 1));
    o[31] = (u32)h << 16 | (u16)g;
}
ITEM_KERNEL
MAIN
