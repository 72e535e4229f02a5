// What the kernels share. No headers of HIP or OpenCL: the compiler alone is enough.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef _Float16 half;
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef half half2 __attribute__((ext_vector_type(2)));
typedef u32 uint4 __attribute__((ext_vector_type(4)));

#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
// A variable in LDS.
#define LOCAL static __attribute__((address_space(3), loader_uninitialized))
#define CONSTANT __attribute__((address_space(4)))
#define NOINLINE __attribute__((noinline))

static inline u32 lane(void) { return __builtin_amdgcn_workitem_id_x(); }
static inline u32 row(void) { return __builtin_amdgcn_workitem_id_y(); }
static inline u32 group(void) { return __builtin_amdgcn_workgroup_id_x(); }
static inline u32 item(void) { return group() * 256 + lane(); }
static inline void barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
