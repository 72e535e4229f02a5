#define DEVICE extern "C" __attribute__((device, noinline))
#define VARIABLE __attribute__((device))
#include "stack.h"
