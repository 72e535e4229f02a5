// Kernels that no other source sees: their names in relocatable device code have a suffix.
#include "hip.h"

static __attribute__((global)) void quiet(int *into, int count) {
  for (int index = 0; index < count; index++)
    if (into[index] & 1) into[index] = index;
}

namespace {
__attribute__((global)) void hidden(int *into, int count) {
  for (int index = 0; index < count; index++) into[index] *= 3;
}
} // namespace

int main() {
  quiet<<<1, 1>>>(0, 3);
  hidden<<<1, 1>>>(0, 3);
  return 7;
}
