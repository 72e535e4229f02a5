// Threads that look HIP's functions up at the same time, while libraries are loaded and unloaded.
#define __HIP_PLATFORM_AMD__
#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, TIMES = 100 };
static pthread_barrier_t start;

static void *ask(void *expected) {
  pthread_barrier_wait(&start);
  for (int i = 0; i < TIMES; i++) {
    void *hip = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL);
    void *needs = dlopen("./needs.so", RTLD_NOW | RTLD_LOCAL);
    if (!hip || !needs) return "not loaded";
    hipDeviceProp_tR0600 properties;
    hipError_t (*function)(hipDeviceProp_tR0600 *, int) =
        (hipError_t(*)(hipDeviceProp_tR0600 *, int))dlsym(i % 2 ? hip : needs, "hipGetDevicePropertiesR0600");
    if (!function || function(&properties, 0)) return "no answer";
    if (strcmp(properties.gcnArchName, expected)) return "another name";
    dlclose(needs);
    dlclose(hip);
  }
  return NULL;
}

int main(int count, char **words) {
  pthread_t threads[THREADS];
  if (count != 2 || !dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL)) return 1;
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, ask, words[1]);
  int failed = 0;
  for (int i = 0; i < THREADS; i++) {
    void *lack;
    pthread_join(threads[i], &lack);
    if (lack) failed = printf("%s\n", (const char *)lack);
  }
  return failed ? 2 : 0;
}
