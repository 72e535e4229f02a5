// Calls a function of HSA as a user of the library, before, between and after two times of use.
#include <hsa/hsa.h>
#include <stdint.h>
#include <stdio.h>

static void call(const char *when) {
  uint16_t major = 0;
  printf("%s:\n", when);
  fflush(stdout);
  hsa_status_t status = hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
  printf("status %x, HSA %d\n", status, major);
}

int main(void) {
  call("before");
  if (hsa_init() || hsa_init()) return 1;
  call("inside");
  if (hsa_shut_down()) return 1;
  call("still inside");
  if (hsa_shut_down()) return 1;
  call("after");
  return 0;
}
