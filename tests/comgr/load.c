/* Loads a library as a program would, and says which fat binaries it registers with HIP.
 *
 *   load LIBRARY
 *
 * One line on standard output for each registered fat binary, in order: its first four bytes as text, and the wrapper's
 * magic and version. Then HIP itself gets it. The last line is `loaded N`. Exit code: 0 loaded, 2 not.
 *
 * Build: cc -std=c11 -rdynamic -o load load.c -lamdhip64 -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

struct wrapper {
  uint32_t magic, version;
  const char *bundle;
  void *reserved;
};

static unsigned count;

/* The libraries bind to this one, because the program comes first. */
void **__hipRegisterFatBinary(const void *data) {
  const struct wrapper *wrapper = data;
  printf("%.4s %08x %u\n", wrapper->bundle, (unsigned)wrapper->magic, (unsigned)wrapper->version);
  ++count;
  void **(*real)(const void *) = (void **(*)(const void *))dlsym(RTLD_NEXT, "__hipRegisterFatBinary");
  return real ? real(data) : NULL;
}

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  if (!dlopen(argv[1], RTLD_NOW)) {
    fprintf(stderr, "load: %s\n", dlerror());
    return 2;
  }
  printf("loaded %u\n", count);
  return 0;
}
