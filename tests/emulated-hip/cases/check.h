// A line for each check; the exit code of a program is the number of wrong ones.
#ifndef CHECK_H
#define CHECK_H
#include <cstdio>
#include <cstdlib>
#include <hip/hip_runtime.h>

static int wrong;

static inline void judge(bool is_right, const char *text, const char *why) {
  std::printf("%s %s%s%s\n", is_right ? "right" : "WRONG", text, is_right ? "" : ": ", is_right ? "" : why);
  std::fflush(stdout);
  wrong += !is_right;
}
#define RIGHT(expression) judge((expression), #expression, "false")
#define DONE(expression)                                                                                                \
  do {                                                                                                                 \
    hipError_t status = (expression);                                                                                  \
    if (status != hipSuccess) judge(false, #expression, hipGetErrorString(status)), exit(wrong);                       \
  } while (0)
#endif
