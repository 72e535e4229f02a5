// A second kernel, so that the program has one in a source added from another directory.
#include "tiny.h"

__global__ void also(int *out) { *out = 2; }

void start_also() { also<<<1, 1>>>(nullptr); }
