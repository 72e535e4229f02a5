// A program that drains on small stacks. Words: a code object, what it does, the size of the stack in KiB.
//
// thread: exits in a thread · handler: exits in a handler on an alternate signal stack
// used: drains in a thread, and says how many bytes of its stack that took
// nested: drains in a handler on an alternate stack, while another signal of that stack arrives
#define _GNU_SOURCE
#include "standin.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

int hotswap_profile_drain(void);

static hsa_status_t take_gpu(hsa_agent_t agent, void *into) {
  uint32_t kind = 0;
  hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &kind);
  if (kind == HSA_DEVICE_TYPE_GPU) *(hsa_agent_t *)into = agent;
  return HSA_STATUS_SUCCESS;
}

static int launch(const char *path) {
  static char file[1 << 20];
  FILE *from = fopen(path, "rb");
  size_t size = from ? fread(file, 1, sizeof file, from) : 0;
  hsa_agent_t gpu = {0};
  hsa_executable_t executable = {0};
  hsa_code_object_reader_t reader = {0};
  if (!size || hsa_init() || hsa_iterate_agents(take_gpu, &gpu)) return 1;
  hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, 0, &executable);
  hsa_code_object_reader_create_from_memory(file, size, &reader);
  hsa_executable_load_agent_code_object(executable, gpu, reader, 0, 0);
  hsa_executable_freeze(executable, 0);
  standin_launch(executable, gpu);
  return 0;
}

static char *stack, *depth;
static volatile sig_atomic_t alarms;

static void *leave(void *unused) {
  exit(7);
  return unused;
}

// Paints what is free below, drains, and looks how far down the paint is gone.
static void *paint(void *unused) {
  char here;
  depth = &here - 256;
  for (volatile char *at = stack; (char *)at < depth; at++) *at = 0x5a;
  if (hotswap_profile_drain()) exit(1);
  char *low = stack;
  while (low < depth && *low == 0x5a) low++;
  printf("%ld\n", (long)((char *)__builtin_frame_address(0) - low));
  return unused;
}

static void on_alarm(int signal) { alarms += signal == SIGALRM; }

static void on_signal(int signal) {
  if (signal == SIGUSR1) exit(7);
  volatile char mine[512];
  memset((char *)mine, 0x33, sizeof mine);
  struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, 0);
  for (int round = 0; round < 2000 && alarms < 50; round++)
    if (hotswap_profile_drain()) exit(1);
  setitimer(ITIMER_REAL, &never, 0);
  for (size_t at = 0; at < sizeof mine; at++)
    if (mine[at] != 0x33) exit(2);
  exit(alarms ? 7 : 3);
}

int main(int count, char **words) {
  pthread_t thread;
  pthread_attr_t attributes;
  size_t size = count > 3 ? (size_t)atoi(words[3]) << 10 : 0;
  if (!size || launch(words[1])) return 1;
  stack = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!strcmp(words[2], "handler") || !strcmp(words[2], "nested")) {
    stack_t alternate = {.ss_sp = stack, .ss_size = size};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    struct sigaction alarm = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART};
    int number = words[2][0] == 'h' ? SIGUSR1 : SIGUSR2;
    if (sigaltstack(&alternate, 0) || sigaction(number, &action, 0) || sigaction(SIGALRM, &alarm, 0)) return 1;
    raise(number);
  }
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, stack, size)) return 1;
  if (pthread_create(&thread, &attributes, words[2][0] == 'u' ? paint : leave, 0)) return 1;
  pthread_join(thread, 0);
  return 7;
}
