// A library with device code of its own.
#include "hip.h"

__attribute__((global)) void bump(int *into) {
  if (into) into[0]++;
}

extern "C" __attribute__((visibility("default"))) void plugin_launch(void) { bump<<<1, 64>>>(0); }
