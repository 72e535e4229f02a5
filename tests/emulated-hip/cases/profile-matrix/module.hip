// A code object that a program loads; PROGRAM makes those of two programs differ.
#include "hip.h"
extern "C" __global__ void loaded(int *p) {
  if (__builtin_amdgcn_workitem_id_x() & 1) p[0] = PROGRAM;
}
