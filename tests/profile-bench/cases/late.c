// A program of the host that opens HIP when it runs, and calls it through pointers only.
#include <dlfcn.h>
#include <stddef.h>

int main(int count, char **words) {
  void *hip = dlopen("libamdhip64.so.7", RTLD_LAZY | RTLD_LOCAL), *module = NULL, *function = NULL;
  int (*load)(void **, const char *) = (int (*)(void **, const char *))dlsym(hip, "hipModuleLoad");
  int (*launch)(void *) = (int (*)(void *))dlsym(hip, "hipModuleLaunchKernel");
  int (*get)(void **, void *, const char *) = (int (*)(void **, void *, const char *))dlsym(hip, "hipModuleGetFunction");
  if (count < 2 || load(&module, words[1]) || get(&function, module, "_Z5saxpyifPKfPf") || launch(function)) return 1;
  return 7;
}
