// A device function for kernels of other translation units.
#include "runtime.h"

__device__ int twice(int value) { return 2 * value; }
