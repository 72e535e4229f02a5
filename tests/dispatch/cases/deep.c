// The same library by `dlopen` as usual, with RTLD_DEEPBIND, and by `dlmopen`: which name its own calls of HIP see.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static void ask(const char *way, void *library) {
  const char *(*shown)(void) = library ? (const char *(*)(void))dlsym(library, "shown") : NULL;
  printf("%s %s\n", way, shown ? shown() : dlerror());
}

int main(void) {
  ask("usual", dlopen("./usual.so", RTLD_NOW | RTLD_LOCAL));
  ask("deep", dlopen("./deep.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND));
  ask("apart", dlmopen(LM_ID_NEWLM, "./apart.so", RTLD_NOW));
  return 0;
}
