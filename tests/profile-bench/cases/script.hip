// A program that does what its words say, in their order; its exit code is 7.
//
// device N · launch · sync · load FILE · go · unload · drain · open LIBRARY · call · close
// fork ... end · _Fork ... end · SYS_fork ... end · thread-exit · small-thread-exit · main-ends · _exit · clock
// quick-exit · abort · signal N · ignore N · wait MILLISECONDS · wait-for-file (of a device)
#include "hip.h"

__attribute__((device, noinline)) float scale(float factor, float value) {
  if (factor == 0) return 0;
  return factor * value;
}

__attribute__((global)) void saxpy(int count, float factor, const float *from, float *into) {
  int index = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (index < count) into[index] += scale(factor, from[index]);
}

extern "C" {
void *dlopen(const char *, int);
void *dlsym(void *, const char *);
int dlclose(void *);
int fork(void);
__attribute__((weak)) int _Fork(void);
long syscall(long, ...);
int wait(int *);
int strcmp(const char *, const char *);
int atoi(const char *);
void exit(int);
void _exit(int);
void quick_exit(int);
void abort(void);
int raise(int);
void (*signal(int, void (*)(int)))(int);
int pthread_create(unsigned long *, const void *, void *(*)(void *), void *);
int pthread_attr_init(void *);
int pthread_attr_setstacksize(void *, unsigned long);
int pause(void);
int usleep(unsigned);
int system(const char *);
__attribute__((noreturn)) void pthread_exit(void *);
int clock_gettime(int, long *);
int dprintf(int, const char *, ...);
__attribute__((weak)) int hotswap_profile_drain(void);
}

// For an object beside this one.
extern "C" void launch_saxpy(void) { saxpy<<<1, 64>>>(64, 2, 0, 0); }

static void *leave_late(void *) {
  usleep(50000); // the first thread has ended
  exit(7);
  return 0;
}

static void *leave(void *) {
  exit(7);
  return 0;
}

int main(int count, char **words) {
  static hipModule_t modules[10240];
  void *function = 0, *library = 0;
  int loaded = 0, child = 0;
  unsigned long thread;
  for (int at = 1; at < count; at++) {
    const char *word = words[at];
    if (!strcmp(word, "device")) hipSetDevice(atoi(words[++at]));
    if (!strcmp(word, "launch")) saxpy<<<1, 64>>>(64, 2, 0, 0);
    if (!strcmp(word, "sync")) hipDeviceSynchronize();
    if (!strcmp(word, "load") && hipModuleLoad(&modules[loaded++], words[++at])) return 99;
    if (!strcmp(word, "go")) {
      hipModuleGetFunction(&function, modules[loaded - 1], "_Z5saxpyifPKfPf");
      hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, 0, 0, 0);
    }
    if (!strcmp(word, "unload")) hipModuleUnload(modules[--loaded]);
    if (!strcmp(word, "drain") && hotswap_profile_drain && hotswap_profile_drain()) return 98;
    if (!strcmp(word, "open") && !(library = dlopen(words[++at], 1))) return 97;
    if (!strcmp(word, "call")) ((void (*)(void))dlsym(library, "plugin_launch"))();
    if (!strcmp(word, "close")) dlclose(library);
    if (!strcmp(word, "fork") || !strcmp(word, "_Fork") || !strcmp(word, "SYS_fork")) {
      child = (word[0] == 'f' ? fork() : word[0] == '_' ? _Fork() : (int)syscall(57)) == 0;
      while (!child && strcmp(words[at], "end")) at++;
      if (!child) wait(0);
    }
    if (!strcmp(word, "end") && child) exit(7);
    if (!strcmp(word, "clock")) {
      long time[2];
      clock_gettime(1, time);
      dprintf(2, "[clock] %ld.%09ld main\n", time[0], time[1]);
    }
    if (!strcmp(word, "_exit")) _exit(7);
    if (!strcmp(word, "quick-exit")) quick_exit(7);
    if (!strcmp(word, "abort")) abort();
    if (!strcmp(word, "signal")) raise(atoi(words[++at]));
    if (!strcmp(word, "ignore")) signal(atoi(words[++at]), (void (*)(int))1);
    if (!strcmp(word, "wait-for-file"))
      for (int round = 0; round < 1000 && system("ls gfx* >/dev/null 2>&1"); round++) usleep(20000);
    if (!strcmp(word, "wait")) usleep(1000 * atoi(words[++at]));
    if (!strcmp(word, "main-ends") && !pthread_create(&thread, 0, leave_late, 0)) pthread_exit(0);
    if (!strcmp(word, "small-thread-exit")) {
      long attributes[8]; // 56 bytes on x86-64, 64 on AArch64
      pthread_attr_init(attributes);
      if (pthread_attr_setstacksize(attributes, 16 << 10) || pthread_create(&thread, attributes, leave, 0)) return 96;
      for (;;) pause();
    }
    if (!strcmp(word, "thread-exit") && !pthread_create(&thread, 0, leave, 0)) for (;;) pause();
  }
  return 7;
}
