// A program without HIP that loads a library with it, as interpreters do.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **paths) {
  void *library = count == 2 ? dlopen(paths[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  void (*ask)(const char *) = library ? (void (*)(const char *))dlsym(library, "ask") : NULL;
  if (!ask) return fprintf(stderr, "%s\n", dlerror()), 1;
  return ask("late"), 0;
}
