// One of many code objects: -DKERNEL=name.
#include "hip.h"

extern "C" __attribute__((global)) void KERNEL(int *into, int count) {
  for (int index = 0; index < count; index++)
    if (into[index] & 1) into[index] = index;
}
