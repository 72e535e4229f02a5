// What instrumented device code of clang 23 and later calls, and the bounds table of its code object: the interface
// of LLVM's device profile runtime, for a bench that must not depend on the one that HotSwap installs.
#include <gpuintrin.h>
#include <stdint.h>

#define BOUNDS(section) \
  extern char __start_##section[] __attribute__((weak, visibility("hidden"))); \
  extern char __stop_##section[] __attribute__((weak, visibility("hidden")))
BOUNDS(__llvm_prf_names);
BOUNDS(__llvm_prf_cnts);
BOUNDS(__llvm_prf_data);
BOUNDS(__llvm_prf_ucnts);

__attribute__((weak, visibility("hidden"))) uint64_t __llvm_profile_raw_version = 11;

__attribute__((used, visibility("protected"))) const void *__llvm_profile_sections[9] = {
    __start___llvm_prf_names, __stop___llvm_prf_names, __start___llvm_prf_cnts,
    __stop___llvm_prf_cnts,   __start___llvm_prf_data, __stop___llvm_prf_data,
    __start___llvm_prf_ucnts, __stop___llvm_prf_ucnts, &__llvm_profile_raw_version,
};

void __llvm_profile_instrument_gpu(uint64_t *counter, uint64_t *uniform, uint64_t step) {
  uint64_t lanes = __gpu_lane_mask();
  if (!__gpu_is_first_in_lane(lanes)) return;
  uint64_t count = (uint64_t)__builtin_popcountl(lanes);
  __scoped_atomic_fetch_add(counter, step * count, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  if (uniform && count == __gpu_num_lanes())
    __scoped_atomic_fetch_add(uniform, step * count, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

int __llvm_profile_sampling_gpu(int bits) {
  if (bits <= 0) return 1;
  return bits >= 32 ? __gpu_block_id_x() == 0 : (__gpu_block_id_x() & ((1u << bits) - 1)) == 0;
}
