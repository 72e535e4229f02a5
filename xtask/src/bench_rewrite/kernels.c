// One copy of the program that `cargo xtask bench rewrite` measures: kernels as libraries have them, compiled for gfx1250.
// Names begin with copy_: the bench puts a number in its place and joins as many copies as it needs.

typedef unsigned int u32;
typedef _Float16 half;
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef half half16 __attribute__((ext_vector_type(16)));
typedef int int8 __attribute__((ext_vector_type(8)));
typedef int int16 __attribute__((ext_vector_type(16)));

#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
#ifdef NO_CALLS
#define NOINLINE static __attribute__((always_inline))
#else
#define NOINLINE static __attribute__((noinline))
#endif
#define JOIN(a, b) a##b

static inline u32 lane(void) { return __builtin_amdgcn_workitem_id_x(); }
static inline u32 item(void) { return __builtin_amdgcn_workgroup_id_x() * 256 + lane(); }
static inline void barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// Sums over a group, with calls: what collectives do.
NOINLINE float copy_fold(float a, float b, int op) {
    switch (op) {
    case 0: return a + b;
    case 1: return a * b;
    case 2: return a > b ? a : b;
    case 3: return a < b ? a : b;
    default: return (a + b) * 0.5f;
    }
}

NOINLINE float4 copy_fold4(float4 a, float4 b, int op) {
    return (float4){copy_fold(a.x, b.x, op), copy_fold(a.y, b.y, op), copy_fold(a.z, b.z, op), copy_fold(a.w, b.w, op)};
}

// Copies and sums of buffers: no site.
#define REDUCE(number, count)                                                                                          \
    KERNEL void JOIN(copy_reduce_, number)(GLOBAL float4 *out, GLOBAL const float4 *in, u32 length, int op) {          \
        for (u32 at = item(); at < length; at += 65536) {                                                              \
            float4 sum = in[at];                                                                                       \
            _Pragma("clang loop unroll(full)") for (int peer = 1; peer < count; ++peer) {                              \
                float4 next = in[at + peer * length];                                                                  \
                if (op == 0) sum += next;                                                                              \
                else if (op == 1) sum *= next;                                                                         \
                else if (op == 2) sum = __builtin_elementwise_maxnum(sum, next);                                          \
                else sum = copy_fold4(sum, next, op);                                                                  \
            }                                                                                                          \
            out[at] = sum;                                                                                             \
        }                                                                                                              \
    }

// Straight arithmetic, as polynomials and hashes have it: no site.
#define MATH(number, count)                                                                                            \
    KERNEL void JOIN(copy_math_, number)(GLOBAL float *out, GLOBAL const float *in, u32 key) {                         \
        float x = in[item()], y = 1;                                                                                   \
        u32 h = key;                                                                                                   \
        _Pragma("clang loop unroll(full)") for (int i = 0; i < count; ++i) {                                           \
            y = __builtin_fmaf(y, x, (float)(i * number + 3));                                                         \
            h = (h ^ (h >> 15)) * (2 * i + 0x9e3779b1u);                                                               \
            h = __builtin_rotateleft32(h, i % 31 + 1) + __builtin_bit_cast(u32, y);                                    \
        }                                                                                                              \
        out[item()] = y + (float)h;                                                                                    \
    }

// Tiles in LDS read at two addresses at once: sites in the inner loop.
#define TILE(number, count)                                                                                            \
    static SHARED __attribute__((loader_uninitialized)) float JOIN(copy_tile_memory_, number)[64 * (count + 1)];       \
    KERNEL void JOIN(copy_tile_, number)(GLOBAL float *out, GLOBAL const float *a, int depth) {                        \
        SHARED float *tile = JOIN(copy_tile_memory_, number);                                                          \
        u32 at = lane();                                                                                               \
        float sums[count];                                                                                             \
        for (int i = 0; i < count; ++i) sums[i] = 0;                                                                   \
        for (int k = 0; k < depth; ++k) {                                                                              \
            tile[at & 63] = a[item() + k];                                                                             \
            tile[(at & 63) + 64 * number] = a[item() + k + 64];                                                        \
            barrier();                                                                                                 \
            _Pragma("clang loop unroll(full)") for (int i = 0; i < count; ++i)                                         \
                sums[i] += tile[(at >> 4) + 64 * i] * tile[(at & 15) + 8 * i + number];                                \
            barrier();                                                                                                 \
        }                                                                                                              \
        float sum = 0;                                                                                                 \
        for (int i = 0; i < count; ++i) sum += sums[i] * (float)(i + 1);                                               \
        out[item()] = sum;                                                                                             \
    }

// Products of matrices: depth 32, and depth 128, which the target lacks.
#define MATRIX(number, count)                                                                                          \
    KERNEL void JOIN(copy_matrix_, number)(GLOBAL float8 *out, GLOBAL const half16 *a, GLOBAL const half16 *b, int k) { \
        float8 sums[count];                                                                                            \
        for (int i = 0; i < count; ++i) sums[i] = out[lane() + 32 * i];                                                \
        for (; k > 0; --k, a += 64, b += 64)                                                                           \
            _Pragma("clang loop unroll(full)") for (int i = 0; i < count; ++i)                                         \
                sums[i] = __builtin_amdgcn_wmma_f32_16x16x32_f16(0, a[lane() + 32 * i], 0, b[lane() + number], 0,      \
                                                                 sums[i], 0, 0);                                       \
        for (int i = 0; i < count; ++i) out[lane() + 32 * i] = sums[i] * sums[i] + 1.0f;                               \
    }                                                                                                                  \
    KERNEL void JOIN(copy_deep_, number)(GLOBAL float8 *out, GLOBAL const int16 *a, GLOBAL const int16 *b, int k) {    \
        float8 sum = out[lane()];                                                                                      \
        for (; k > 0; --k, a += 64, b += 64) {                                                                         \
            sum = __builtin_amdgcn_wmma_f32_16x16x128_fp8_fp8(a[lane()], b[lane() + number], 0, sum, 0, 0);            \
            sum = __builtin_amdgcn_wmma_scale_f32_16x16x128_f8f6f4(0, a[lane() + 32], 1, b[lane()], 0, sum, 0, 0, k,   \
                                                                   1, 0, number, 0, 1);                                \
        }                                                                                                              \
        out[lane()] = sum;                                                                                             \
    }

// Conversions to eight bits and back.
#define CONVERT(number, count)                                                                                         \
    KERNEL void JOIN(copy_convert_, number)(GLOBAL u32 *out, GLOBAL const float4 *in, GLOBAL float4 *back) {           \
        _Pragma("clang loop unroll(full)") for (int i = 0; i < count; ++i) {                                           \
            float4 v = in[item() + i * 4096];                                                                          \
            u32 packed = __builtin_amdgcn_cvt_pk_fp8_f32(v.x, v.y, 0, 0);                                              \
            packed = __builtin_amdgcn_cvt_pk_fp8_f32(v.z * number, v.w, packed, 1);                                    \
            out[item() + i * 4096] = packed;                                                                           \
            float2 low = __builtin_amdgcn_cvt_pk_f32_bf8(packed, 0), high = __builtin_amdgcn_cvt_pk_f32_bf8(packed, 1); \
            back[item() + i * 4096] = (float4){low.x, low.y, high.x, high.y};                                          \
        }                                                                                                              \
    }

#ifndef NO_SITES
TILE(1, 4) TILE(2, 8) TILE(3, 16) TILE(4, 24) TILE(5, 32) TILE(6, 48)
MATRIX(1, 1) MATRIX(2, 2) MATRIX(3, 4) MATRIX(4, 6) MATRIX(5, 8)
CONVERT(1, 4) CONVERT(2, 16) CONVERT(3, 32) CONVERT(4, 48)
#endif
REDUCE(1, 2) REDUCE(2, 4) REDUCE(3, 8) REDUCE(4, 16) REDUCE(5, 24) REDUCE(6, 32) REDUCE(7, 48) REDUCE(8, 64)
MATH(1, 16) MATH(2, 48) MATH(3, 96) MATH(4, 240)
