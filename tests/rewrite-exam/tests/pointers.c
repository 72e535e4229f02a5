// Functions that are reached through a table of pointers, with sites that need registers beyond those of the instruction.
typedef unsigned int u32;
typedef float f32x8 __attribute__((ext_vector_type(8)));
typedef _Float16 f16x8 __attribute__((ext_vector_type(8)));
typedef int i32x16 __attribute__((ext_vector_type(16)));
static __attribute__((address_space(3), loader_uninitialized)) u32 tile[1024];

static __attribute__((noinline)) u32 narrow(u32 i, const float *in, const i32x16 *, f16x8 *) {
    return (u32)__builtin_amdgcn_cvt_pk_fp8_f32_e5m3(in[i], in[i + 1], (int)i, 1);
}
static __attribute__((noinline)) u32 product(u32 i, const float *, const i32x16 *a, f16x8 *c) {
    c[i] = __builtin_amdgcn_wmma_f16_16x16x128_fp8_bf8(a[i], a[i + 1], (short)0, c[i], 0, 0);
    return (u32)c[i][0];
}
static __attribute__((noinline)) u32 both(u32 i, const float *in, const i32x16 *a, f16x8 *c) {
    return narrow(i, in, a, c) + product(i + 1, in, a, c) + tile[i] * 3;
}

typedef u32 (*Step)(u32, const float *, const i32x16 *, f16x8 *);
__attribute__((used, visibility("protected"))) Step steps[3] = {narrow, product, both};

__attribute__((amdgpu_kernel, visibility("protected"))) void run(u32 *out, u32 n, const float *in, const i32x16 *a, f16x8 *c) {
    u32 i = __builtin_amdgcn_workitem_id_x();
    tile[i & 1023] = i;
    for (u32 step = 0; step < n; ++step) out[i] += steps[step % 3](i + step, in, a, c);
    out[i + 1] = (u32)__builtin_amdgcn_cvt_pk_fp8_f32_e5m3(in[i], in[i + n], (int)i, 1);
}

__attribute__((amdgpu_kernel, visibility("protected"))) void alone(u32 *out, u32 n) { out[n] = tile[n]; }
