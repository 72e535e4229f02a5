// Two pairs of functions and two pairs of kernels that are alike, which `--icf=all` folds: of the second of each there is no
// code any more, but call frames and debug information say something of it.
typedef unsigned int u32;
typedef int i32x16 __attribute__((ext_vector_type(16)));
typedef float f32x8 __attribute__((ext_vector_type(8)));
static __attribute__((address_space(3), loader_uninitialized)) u32 tile[1024];

#define SUM(name, start, factor)                                                                                                \
    static __attribute__((noinline)) u32 name(u32 i) {                                                                          \
        u32 sum = start;                                                                                                        \
        for (u32 j = 0; j < i; ++j) sum += tile[i + j] * factor;                                                                \
        return sum;                                                                                                             \
    }
SUM(one, 0, 3)
SUM(two, 0, 3)
SUM(three, 1, 5)

#define PRODUCT(name, call, place)                                                                                              \
    __attribute__((amdgpu_kernel, visibility("protected"))) void name(u32 *out, u32 i, i32x16 *a, f32x8 *c) {                   \
        out[i] = call;                                                                                                          \
        c[i + place] = __builtin_amdgcn_wmma_f32_16x16x128_fp8_fp8(a[i], a[i + 1], (short)0, c[i], 0, 0);                       \
    }
PRODUCT(a, one(i), 0)
PRODUCT(b, two(i), 0)
PRODUCT(d, two(i) + three(i), 1)
PRODUCT(e, one(i) + three(i), 1)
