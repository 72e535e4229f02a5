#define DEVICE extern "C" __attribute__((device, noinline))
#include "stack.h"
