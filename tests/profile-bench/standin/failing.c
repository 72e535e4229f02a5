// Preloaded: functions of libc that fail where the program itself calls them (that is, its drain), not its libraries.
//
// FAIL_LIBC  NAME=ERRNO,...
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_failing(const char *name, void *caller) {
  const char *rules = getenv("FAIL_LIBC");
  Dl_info where;
  size_t length = strlen(name);
  for (; rules && *rules; rules = strchr(rules, ',') ? strchr(rules, ',') + 1 : 0) {
    if (strncmp(rules, name, length) || rules[length] != '=') continue;
    if (!dladdr(caller, &where) || strstr(where.dli_fname, ".so")) return 0;
    errno = atoi(rules + length + 1);
    return 1;
  }
  return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAILS(name) is_failing(#name, __builtin_return_address(0))

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return FAILS(open) ? -1 : REAL(open)(path, flags, mode);
}
ssize_t writev(int file, const struct iovec *parts, int count) { return FAILS(writev) ? -1 : REAL(writev)(file, parts, count); }
int rename(const char *from, const char *to) { return FAILS(rename) ? -1 : REAL(rename)(from, to); }
long syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long words[6];
  for (int i = 0; i < 6; ++i) words[i] = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_renameat2 && FAILS(rename)) return -1;
  return REAL(syscall)(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
int flock(int file, int operation) { return FAILS(flock) ? -1 : REAL(flock)(file, operation); }
int fstat(int file, struct stat *into) { return FAILS(fstat) ? -1 : REAL(fstat)(file, into); }
void *calloc(size_t count, size_t size) {
  static __typeof__(&calloc) real;
  static int is_looking;
  static char early[4096] __attribute__((aligned(16)));
  static size_t used;
  if (!real && is_looking) { used += 512; return early + used - 512; } // dlsym itself allocates
  if (!real) { is_looking = 1; real = REAL(calloc); is_looking = 0; }
  return FAILS(calloc) ? 0 : real(count, size);
}
