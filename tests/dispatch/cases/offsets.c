// Where HIP's headers have the name.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#include <hip/hip_deprecated.h>
#include <stddef.h>
#include <stdio.h>

#define PRINT(type) printf("%zu %zu %zu\n", offsetof(type, gcnArchName), sizeof ((type *)0)->gcnArchName, sizeof(type))

int main(void) {
  PRINT(hipDeviceProp_tR0600);
  PRINT(hipDeviceProp_tR0000);
  return 0;
}
