// Starts the kernel of kernel.hip and prints what HIP says.
#include <cstdio>

const char *start();

int main() { std::puts(start()); }
