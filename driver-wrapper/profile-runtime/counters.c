// The device half of profiling for clang 23 and later: what instrumented AMDGPU code calls, and the
// table by which a drain finds the counters. Compiled by the user's clang to bitcode that fits every
// processor; the wave size is known only in the device link.
//
// Names and types are those of LLVM's compiler-rt/lib/profile; the code is our own. No libc, no HIP.

// Nothing here is counted itself, where the device link puts counters into bitcode (-fcs-profile-generate): not even
// the functions of the header, which are inlined only into functions like them.
#pragma clang attribute push(__attribute__((no_profile_instrument_function)), apply_to = function)

#include <gpuintrin.h>
#include <stddef.h>
#include <stdint.h>

#define SECTION(name)                                                          \
  extern const char __start_##name[] __attribute__((weak, visibility("hidden"))); \
  extern const char __stop_##name[] __attribute__((weak, visibility("hidden")))

// The linker defines these where the section is there; else they are null.
SECTION(__llvm_prf_names);
SECTION(__llvm_prf_cnts);
SECTION(__llvm_prf_data);
SECTION(__llvm_prf_ucnts);

// Defined by code of -fprofile-generate, else by version.c.
extern const uint64_t __llvm_profile_raw_version __attribute__((visibility("hidden")));

// Bounds of the sections, and where the version is: 72 bytes, in LLVM's order.
__attribute__((used, visibility("protected"))) const void *__llvm_profile_sections[9] = {
    __start___llvm_prf_names, __stop___llvm_prf_names, __start___llvm_prf_cnts,
    __stop___llvm_prf_cnts,   __start___llvm_prf_data, __stop___llvm_prf_data,
    __start___llvm_prf_ucnts, __stop___llvm_prf_ucnts, &__llvm_profile_raw_version,
};

// Whether this block counts: each 2^bits-th one in x does; from 32 bits on only the first.
int __llvm_profile_sampling_gpu(uint32_t bits) {
  const uint32_t block = __gpu_block_id(__GPU_X_DIM);
  return bits >= 32 ? block == 0 : (block & ((UINT32_C(1) << bits) - 1)) == 0;
}

typedef __attribute__((address_space(1))) uint64_t global_counter;
typedef __attribute__((address_space(1))) char global_byte;

// One atomic of one lane. Its address counts as another one in each lane, by an offset that is zero; else the back end, which
// does not know that a single lane is active, looks for the first one again and multiplies by the number of lanes.
static inline __attribute__((always_inline)) void add(uint64_t *counter, uint64_t amount) {
  uint32_t zero = 0;
  __asm__("" : "+v"(zero));
  global_counter *place = (global_counter *)((global_byte *)counter + zero);
  __scoped_atomic_fetch_add(place, amount, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

// Adds step for each active lane, by one atomic of the wave's first active lane; and the same to
// the uniform counter, if there is one, where no lane is switched off. Inlined, for a call would cost more, and a kernel
// with calls has a stack; the inliner would not do it by itself, since only one of the two functions is to be counted.
__attribute__((always_inline)) void __llvm_profile_instrument_gpu(uint64_t *counter, uint64_t *uniform, uint64_t step) {
  const uint64_t active = __gpu_lane_mask();
  const uint32_t below = __builtin_amdgcn_mbcnt_lo((uint32_t)active, 0);
  if (__builtin_amdgcn_mbcnt_hi((uint32_t)(active >> 32), below) != 0)
    return;
  const uint32_t lanes = (uint32_t)__builtin_popcountg(active);
  add(counter, step * lanes);
  // That a counter of known size is not null is known to the compiler in this way alone.
  const int has_uniform = __builtin_object_size(uniform, 0) != (size_t)-1 || uniform;
  if (has_uniform && lanes == __gpu_num_lanes())
    add(uniform, step * lanes);
}

#pragma clang attribute pop
