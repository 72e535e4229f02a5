// Its text is another one for gfx1031.
#include "tiny.h"

__global__ void who(int *out) {
#ifdef __gfx1031__
  *out = 1031;
#else
  *out = 0;
#endif
}
