// Host code that needs the C++ library.
#include <iostream>
#include <string>
#include <vector>

const char *start();

int main() {
  const std::vector<std::string> lines(1, start());
  for (const std::string &line : lines)
    std::cout << line << '\n';
}
