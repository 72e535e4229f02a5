// The version of the raw profile where nothing else defines it: counters of the front end. RAW_VERSION
// is what this clang writes. A member of its own, so that the optimiser's counters keep their version.

#include <stdint.h>

__attribute__((weak, visibility("hidden"))) const uint64_t __llvm_profile_raw_version = RAW_VERSION;
