// The matrix instructions of each target: MFMA on the server parts, WMMA on the others.
#include "device.h"

typedef float float8 __attribute__((ext_vector_type(8)));
typedef float float16 __attribute__((ext_vector_type(16)));
typedef double double4 __attribute__((ext_vector_type(4)));
typedef half half4 __attribute__((ext_vector_type(4)));
typedef half half8 __attribute__((ext_vector_type(8)));
typedef half half16 __attribute__((ext_vector_type(16)));
typedef int int2 __attribute__((ext_vector_type(2)));
typedef int int8 __attribute__((ext_vector_type(8)));
typedef int int16 __attribute__((ext_vector_type(16)));

#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
KERNEL void matrix_f32(GLOBAL float4 *out, float a, float b) {
    float4 sum = out[lane()];
    for (int i = 0; i < 4; ++i)
        sum = __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, sum, 0, 0, 0);
    out[lane()] = sum;
}

KERNEL void matrix_f16(GLOBAL float16 *out, GLOBAL const half4 *a, GLOBAL const half4 *b) {
    out[lane()] = __builtin_amdgcn_mfma_f32_32x32x8f16(a[lane()], b[lane()], out[lane()], 0, 0, 0);
}

KERNEL void matrix_f64(GLOBAL double4 *out, double a, double b) {
    out[lane()] = __builtin_amdgcn_mfma_f64_16x16x4f64(a, b, out[lane()], 0, 0, 0);
}
#endif

#if defined(__gfx942__) || defined(__gfx950__)
KERNEL void matrix_fp8(GLOBAL float4 *out, GLOBAL const long *a, GLOBAL const long *b) {
    out[lane()] = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(a[lane()], b[lane()], out[lane()], 0, 0, 0);
}
#endif

#if defined(__gfx950__)
KERNEL void matrix_scaled(GLOBAL float4 *out, GLOBAL const int8 *a, GLOBAL const int8 *b, int left, int right) {
    out[lane()] = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a[lane()], b[lane()], out[lane()], 0, 0, 0, left, 0,
                                                                   right);
}
#endif

#if defined(__gfx1100__) && !defined(WAVE64)
KERNEL void matrix_f16(GLOBAL float8 *out, GLOBAL const half16 *a, GLOBAL const half16 *b) {
    out[lane()] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a[lane()], b[lane()], out[lane()]);
}
#endif

#if defined(__gfx1201__)
KERNEL void matrix_f16(GLOBAL float8 *out, GLOBAL const half8 *a, GLOBAL const half8 *b) {
    out[lane()] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a[lane()], b[lane()], out[lane()]);
}

KERNEL void matrix_fp8(GLOBAL float8 *out, GLOBAL const int2 *a, GLOBAL const int2 *b) {
    out[lane()] = __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(a[lane()], b[lane()], out[lane()]);
}
#endif

#if defined(__gfx1250__)
KERNEL void matrix_f16(GLOBAL float8 *out, GLOBAL const half16 *a, GLOBAL const half16 *b) {
    out[lane()] = __builtin_amdgcn_wmma_f32_16x16x32_f16(0, a[lane()], 0, b[lane()], 0, out[lane()], 0, 0);
}

KERNEL void matrix_fp8(GLOBAL float8 *out, GLOBAL const int16 *a, GLOBAL const int16 *b) {
    out[lane()] = __builtin_amdgcn_wmma_f32_16x16x128_fp8_fp8(a[lane()], b[lane()], 0, out[lane()], 0, 0);
}

KERNEL void matrix_scaled(GLOBAL float8 *out, GLOBAL const int16 *a, GLOBAL const int16 *b, int left, int right) {
    out[lane()] = __builtin_amdgcn_wmma_scale_f32_16x16x128_f8f6f4(0, a[lane()], 1, b[lane()], 0, out[lane()], 0, 0,
                                                                   left, 1, 0, right, 0, 1);
}
#endif

// Every target has at least this one.
KERNEL void matrix_none(GLOBAL float *out) { out[lane()] += 1; }
