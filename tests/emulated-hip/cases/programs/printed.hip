// Every format of printf: the host's own text.
#include "check.h"
#include <fcntl.h>
#include <string>
#include <unistd.h>
// n is 6; unknown to the compiler on the device. Strings have no width and no precision: HIP 7.2 counts the words of what it
// has printed instead of those that came, and takes others for the next argument.
#define LINES(n)                                                                                                       \
  printf("%d %i %u %x %X %o %c %% %5d|%-5d|%05d|%+d|% d\n", -5, n, 4000000000u, 255, 255, 8, 'c', 42, 42, 42, 42, 42);  \
  printf("%ld %lu %llx %lld %hd %hhd %zu\n", -5000000000l, 5000000000ul, 0x123456789abcdefull, -1ll, (short)-2,         \
      (signed char)-3, (size_t)7);                                                                                     \
  printf("%f %.2f %10.3f %-10.1f| %e %g %a %G\n", 1.5, 3.14159, 2.5f, 9.75, 12345.678, 0.0001, 1.0 * n, 1e20);          \
  printf("%s|%s %s\n", "text", "a longer one, of some words", n > 5 ? "large" : "small");                               \
  printf("%*d %.*f %p %s\n", n, 42, 3, 2.0, (void *)0x1234, "");                                                       \
  printf("no arguments\n");                                                                                            \
  printf("%d %s %f %d %s %f %d %s %f\n", 1, "two", 3.0, 4, "five", 6.0, 7, "eight", 9.0);                              \
  printf("%f %f %e\n", 1.0 / (n - 6), -0.0, -1e-310);                                                                  \
  printf("%s\n", "a text that is longer than one packet of a message of a kernel to the host, which has fifty-six bytes");
__global__ void print(int n) { LINES(n) }
__global__ void lanes() {
  if (threadIdx.x % 16 == 3) printf("lane %u of block %u\n", threadIdx.x, blockIdx.x);
}
// The text that a call writes to standard output.
template <typename F> static std::string text_of(F call) {
  std::fflush(stdout);
  int kept = dup(1), file = open("printed.txt", O_RDWR | O_CREAT | O_TRUNC, 0600);
  dup2(file, 1);
  call();
  std::fflush(stdout);
  dup2(kept, 1), close(kept);
  std::string text(lseek(file, 0, SEEK_END), 0);
  if (pread(file, &text[0], text.size(), 0) < 0) text.clear();
  close(file);
  return text;
}
int main() {
  volatile int six = 6;
  std::string host = text_of([&] { LINES(six) });
  std::string device = text_of([&] { print<<<1, 1>>>(six); DONE(hipDeviceSynchronize()); });
  judge(device == host, "the host's text", device.c_str());
  std::string all = text_of([] { lanes<<<2, 64>>>(); DONE(hipDeviceSynchronize()); });
  int found = 0;
  for (int b = 0; b < 2; b++) for (int t = 3; t < 64; t += 16)
    found += all.find("lane " + std::to_string(t) + " of block " + std::to_string(b) + "\n") != std::string::npos;
  RIGHT(found == 8 && all.size() < 8 * 20);
  return wrong;
}
