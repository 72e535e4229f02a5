// Dot products, matrix products, a transcendental function, a clock, a trap: instructions that siblings lack or hurry.
#define KERNEL extern "C" __attribute__((global)) void
#define ID (__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x())
KERNEL plain(const float *x, float *y) { y[ID] += x[ID] * 3; }
#ifdef DOT
KERNEL dot(const int *x, int *y) { y[ID] = __builtin_amdgcn_sdot4(x[ID], x[ID + 1], y[ID], 0); }
#endif
#ifdef MATRIX
typedef float float4v __attribute__((ext_vector_type(4)));
KERNEL matrix(const float *x, float4v *y) { y[ID] = __builtin_amdgcn_mfma_f32_16x16x4f32(x[ID], x[ID + 1], y[ID], 0, 0, 0); }
#endif
#ifdef SMALL
KERNEL small(const int *x, float *y) { y[ID] = __builtin_amdgcn_cvt_f32_fp8(x[ID], 0); }
#endif
#ifdef ROOT
KERNEL root(const float *x, float *y) { y[ID] = __builtin_amdgcn_rsqf(x[ID]); }
#endif
#ifdef CLOCK
KERNEL ticks(unsigned *y) { y[ID] = __builtin_amdgcn_s_getreg(29 | 19 << 11); }
#endif
#ifdef SCALAR
KERNEL scalar(float x, float z, float *y) { *y = x * z + 1; }
#endif
