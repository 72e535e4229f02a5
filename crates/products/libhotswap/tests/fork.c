/* fork FILE: queries in a child of a process that has analysed code, in the child of the child, and in the parent afterwards. */
#define _GNU_SOURCE
#include <hotswap.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t functions_of(const char *path) {
  hotswap_file *file;
  hotswap_image *image;
  hotswap_image_info info = {.struct_size = sizeof info};
  if (hotswap_file_open(path, &file, NULL) != HOTSWAP_OK || hotswap_file_image(file, 0, &image, NULL) != HOTSWAP_OK ||
      hotswap_image_info_get(image, &info, NULL) != HOTSWAP_OK)
    return 0;
  hotswap_image_free(image);
  hotswap_file_free(file);
  return info.functions;
}

static size_t in_child(const char *path, int depth) {
  int pipes[2];
  size_t found = 0;
  if (pipe(pipes))
    return 0;
  pid_t child = fork();
  if (!child) {
    alarm(30); /* a hang is a failure */
    found = functions_of(path);
    if (depth > 1 && in_child(path, depth - 1) != found)
      found = 0;
    _exit(write(pipes[1], &found, sizeof found) != sizeof found);
  }
  int status;
  close(pipes[1]);
  if (read(pipes[0], &found, sizeof found) != sizeof found)
    found = 0;
  close(pipes[0]);
  return waitpid(child, &status, 0) == child && !status ? found : 0;
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  size_t before = functions_of(argv[1]), child = in_child(argv[1], 2), after = functions_of(argv[1]);
  printf("%zu %zu %zu\n", before, child, after);
  return !before || before != child || before != after;
}
