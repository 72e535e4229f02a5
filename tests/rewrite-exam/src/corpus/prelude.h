// What the generated kernels share. No headers of HIP or OpenCL: the compiler alone is enough.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef _Float16 half;
#define VECTOR(type, name, size) typedef type name __attribute__((ext_vector_type(size)))
VECTOR(float, f32x2, 2);
VECTOR(float, f32x4, 4);
VECTOR(float, f32x8, 8);
VECTOR(float, f32x16, 16);
VECTOR(half, f16x8, 8);
VECTOR(half, f16x16, 16);
VECTOR(half, f16x32, 32);
VECTOR(__bf16, bf16x8, 8);
VECTOR(__bf16, bf16x16, 16);
VECTOR(__bf16, bf16x32, 32);
VECTOR(int, i32x2, 2);
VECTOR(int, i32x4, 4);
VECTOR(int, i32x8, 8);
VECTOR(int, i32x16, 16);
VECTOR(u32, u32x2, 2);
VECTOR(u32, u32x3, 3);
VECTOR(u32, u32x4, 4);
VECTOR(u64, u64x2, 2);
#if __clang_major__ < 24
VECTOR(int, tensor8, 8);
VECTOR(int, tensor_rest, 4);
#else
VECTOR(u32, tensor8, 8);
VECTOR(u32, tensor_rest, 4);
#endif
VECTOR(u32, tensor4, 4);
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected"))) void
#define SMALL __attribute__((amdgpu_flat_work_group_size(32, 32), amdgpu_waves_per_eu(1, 1)))
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
#define LOCAL static __attribute__((address_space(3), loader_uninitialized))
#define NOINLINE __attribute__((noinline))
#define UNROLL _Pragma("clang loop unroll(full)")
#define ROLLED _Pragma("clang loop unroll(disable)")
#define lane() __builtin_amdgcn_workitem_id_x()
#define group() __builtin_amdgcn_workgroup_id_x()
static inline void barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
