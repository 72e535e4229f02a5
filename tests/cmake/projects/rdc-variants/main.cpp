// Prints how many results are right.
#include <cstdio>

int count_right();

int main() {
  int right = count_right();
  std::printf("%d of 64 results are right\n", right);
  return right != 64;
}
