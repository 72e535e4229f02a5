/* The code objects of a process, as HSA's loader extension lists them: two executables, one with an object whose bytes the
 * program has freed. The functions are this program's, with the contract of hsa_ven_amd_loader.h. */
#define _DEFAULT_SOURCE
#include <hotswap.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char bytes[1 << 20];
static size_t size;
static void *gone;

static int executables(int (*callback)(hotswap_hsa_handle, void *), void *data) {
  for (uint64_t number = 1; number <= 2; number++) {
    int status = callback((hotswap_hsa_handle){number}, data);
    if (status)
      return status;
  }
  return 0;
}

static int objects(hotswap_hsa_handle executable, int (*callback)(hotswap_hsa_handle, hotswap_hsa_handle, void *),
                   void *data) {
  return callback(executable, (hotswap_hsa_handle){executable.handle * 10}, data);
}

static int get_info(hotswap_hsa_handle object, int attribute, void *value) {
  const char uri[] = "memory://1#offset=0x1000&size=64";
  uint64_t number = 0;
  switch (attribute) {
  case 3: number = 0xa6e27; break;
  case 5: number = (uint64_t)(object.handle == 10 ? (void *)bytes : gone); break;
  case 6: number = size; break;
  case 8: number = (uint64_t)-4096; break;
  case 9: number = 0x7f0000000000; break;
  case 10: number = 0x5000; break;
  case 11: *(uint32_t *)value = sizeof uri - 1; return 0;
  case 12: memcpy(value, uri, sizeof uri - 1); return 0;
  default: return 0x1001;
  }
  *(uint64_t *)value = number;
  return 0;
}

static int show(const hotswap_process_object *object, void *context) {
  hotswap_image_info info = {.struct_size = sizeof info};
  if (object->image)
    hotswap_image_info_get(object->image, &info, NULL);
  printf("%llu/%llu agent=%llx delta=%lld base=%llx size=%llx %s functions=%zu %s\n",
         (unsigned long long)object->executable, (unsigned long long)object->object, (unsigned long long)object->agent,
         (long long)object->load_delta, (unsigned long long)object->load_base, (unsigned long long)object->load_size,
         object->uri, info.functions, object->problem);
  if (object->image && !*(hotswap_image **)context)
    *(hotswap_image **)context = hotswap_image_retain(object->image);
  return 0;
}

int main(int argc, char **argv) {
  FILE *in = argc > 1 ? fopen(argv[1], "rb") : NULL;
  if (!in)
    return 2;
  size = fread(bytes, 1, sizeof bytes, in);
  fclose(in);
  gone = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  hotswap_hsa_loader loader = {sizeof loader, executables, objects, get_info};
  hotswap_image *kept = NULL;
  hotswap_error *error = NULL;
  if (hotswap_process_iterate(&loader, show, &kept, &error) != HOTSWAP_OK)
    return printf("%s\n", hotswap_error_message(error)), 1;
  memset(bytes, 0, sizeof bytes);
  hotswap_image_info info = {.struct_size = sizeof info};
  int good = hotswap_image_info_get(kept, &info, NULL) == HOTSWAP_OK;
  printf("kept functions=%zu\n", info.functions);
  hotswap_image_free(kept);
  return good ? 0 : 1;
}
