// Launches a kernel: `runs LAUNCHES PROCESSES [CHILDREN]`. It waits until so many processes of this directory have
// started, forks children before it uses HIP, which do the same, and waits for them.
#include <hip/hip_runtime.h>
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

__global__ void count(int *p) {
  if (threadIdx.x & 1) p[0] = 1;
}

static int started() {
  int found = 0;
  DIR *directory = opendir(".");
  while (dirent *entry = readdir(directory)) found += !strncmp(entry->d_name, "started.", 8);
  closedir(directory);
  return found;
}

__attribute__((noinline)) static int work(int launches) {
  int *p;
  if (hipMalloc(&p, 4096) != hipSuccess) return 1;
  for (int i = 0; i < launches; ++i) count<<<1, 64>>>(p);
  return hipDeviceSynchronize() != hipSuccess;
}

int main(int, char **words) {
  fclose(fopen(("started." + std::to_string(getpid())).c_str(), "w"));
  while (started() < atoi(words[2])) usleep(1000);
  for (int i = words[3] ? atoi(words[3]) : 0; i > 0; --i)
    if (fork() == 0) return work(atoi(words[1]));
  int failed = work(atoi(words[1])), status = 0;
  while (wait(&status) > 0) failed |= status;
  printf(failed ? "WRONG\n" : "done\n");
  return failed;
}
