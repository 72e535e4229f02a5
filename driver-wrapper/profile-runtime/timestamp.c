// When a function ran first, for -ftemporal-profile: a number for each function, in the order in which waves of this
// code object came by. A member of its own, which only such code takes out of the archive.

#pragma clang attribute push(__attribute__((no_profile_instrument_function)), apply_to = function)

#include <gpuintrin.h>
#include <stdint.h>

static uint64_t passed;

void __llvm_profile_set_timestamp(uint64_t *probe) {
  const uint64_t there = __scoped_atomic_load_n(probe, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  if ((there != 0 && there != UINT64_MAX) || !__gpu_is_first_in_lane(__gpu_lane_mask()))
    return;
  // Of waves that come by at once any one may be the first.
  const uint64_t now = 1 + __scoped_atomic_fetch_add(&passed, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  __scoped_atomic_store_n(probe, now, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

#pragma clang attribute pop
