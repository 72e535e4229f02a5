// The kernel of the second library.
#include "tiny.h"

__global__ void other(int *out) { *out = 2; }

void start_other() { other<<<1, 1>>>(nullptr); }
