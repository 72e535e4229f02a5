// SHA-256, CRC and a counter-based random number generator: rotations, tables, wide products.
#include "device.h"

static const u32 K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};

static inline u32 turn(u32 x, u32 by) { return x >> by | x << (32 - by); }

KERNEL void sha256(GLOBAL u32 *state, GLOBAL const u32 *blocks) {
    u32 w[64], s[8];
    for (int i = 0; i < 16; ++i)
        w[i] = __builtin_bswap32(blocks[item() * 16 + i]);
    for (int i = 16; i < 64; ++i) {
        u32 a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    for (int i = 0; i < 8; ++i)
        s[i] = state[item() * 8 + i];
    for (int i = 0; i < 64; ++i) {
        u32 e = s[4], a = s[0];
        u32 one = s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + K[i] + w[i];
        u32 two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        for (int j = 7; j > 0; --j)
            s[j] = s[j - 1];
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; ++i)
        state[item() * 8 + i] += s[i];
}

KERNEL void crc(GLOBAL u32 *out, GLOBAL const u8 *bytes, u32 length) {
    u32 rest = ~0u;
    for (u32 i = 0; i < length; ++i) {
        rest ^= bytes[item() * length + i];
        for (int bit = 0; bit < 8; ++bit)
            rest = rest >> 1 ^ (0xedb88320 & -(rest & 1));
    }
    out[item()] = ~rest;
}

KERNEL void philox(GLOBAL uint4 *out, u32 low, u32 high) {
    uint4 c = {item(), 0, 0, 0};
    for (int i = 0; i < 10; ++i) {
        u64 a = (u64)0xd2511f53 * c.x, b = (u64)0xcd9e8d57 * c.z;
        c = (uint4){(u32)(b >> 32) ^ c.y ^ low, (u32)b, (u32)(a >> 32) ^ c.w ^ high, (u32)a};
        low += 0x9e3779b9;
        high += 0xbb67ae85;
    }
    out[item()] = c;
}
