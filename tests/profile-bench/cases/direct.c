// A program that uses HSA without HIP. Words: a file, then `destroy` and `shut-down` as wanted.
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hsa_status_t take_gpu(hsa_agent_t agent, void *into) {
  uint32_t kind = 0;
  hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &kind);
  if (kind == HSA_DEVICE_TYPE_GPU) *(hsa_agent_t *)into = agent;
  return HSA_STATUS_SUCCESS;
}

int main(int count, char **words) {
  static char file[1 << 20];
  FILE *from = fopen(words[1], "rb");
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
  for (int at = 2; at < count; at++) {
    if (!strcmp(words[at], "destroy") && hsa_executable_destroy(executable)) return 2;
    if (!strcmp(words[at], "shut-down") && hsa_shut_down()) return 3;
  }
  return 7;
}
