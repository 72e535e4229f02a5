// Processes around a GPU: children of fork, a reset while a kernel runs, an end while one runs.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <hip/hip_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void add(int *p, int n) { for (int i = 0; i < n; i++) atomicAdd(p, 1); }
__global__ void forever(volatile int *flag) { while (!*flag) {} }

static int *data;
static bool begin() { return !hipMalloc(&data, 4096) && !hipMemset(data, 0, 4096); }
static int value() {
  int number = -1;
  add<<<1, 64>>>(data, 3);
  return hipMemcpy(&number, data, 4, hipMemcpyDeviceToHost) ? -2 : number;
}
// The exit code of a child, or -1.
static int end_of(pid_t child) {
  int status;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int, char **words) {
  if (!std::strcmp(words[1], "before")) { // Each process has GPUs of its own.
    pid_t child = fork();
    bool right = begin() && value() == 192;
    if (!child) exit(right ? 5 : 6);
    return right && end_of(child) == 5 ? 0 : 1;
  }
  if (!begin()) return 10;
  if (!std::strcmp(words[1], "after")) {
    pid_t child = fork();
    if (!child) alarm(20), exit(7);
    pid_t other = fork();
    if (!other) execlp("true", "true", nullptr), _exit(1);
    return end_of(child) == 7 && end_of(other) == 0 && value() == 192 ? 0 : 1;
  }
  if (!std::strcmp(words[1], "reset")) // HIP does not wait for what runs.
    return hipDeviceReset() || !begin() || value() != 192;
  forever<<<1, 32>>>(data);
  return 8;
}
