// An allocator to preload, which asks for libc's functions when it is first called.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void *(*next)(size_t);
static int is_asking;

void *malloc(size_t size) {
  if (is_asking) {
    static const char text[] = "the question allocates\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(98);
    _exit(97);
  }
  if (!next) {
    is_asking = 1;
    next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    is_asking = 0;
  }
  return next(size);
}
