// Knows the middle library only.
#include <cstdio>

const char *middle();

int main() { std::puts(middle()); }
