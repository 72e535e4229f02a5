// A kernel of the program itself, and calls into both libraries.
#include "tiny.h"

#include <cstdio>

const char *start();
void start_other();

__global__ void third(int *out) { *out = 3; }

int main() {
  third<<<1, 1>>>(nullptr);
  start_other();
  std::puts(start());
}
