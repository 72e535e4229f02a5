/* Reads a code object through libamd_comgr as the HIP runtime does when it loads one.
 *
 *   metadata FILE
 *
 * Standard output: the ISA's name; then a line for each kernel in the metadata: name, symbol, bytes of arguments.
 * Exit code: 0 read, 2 not.
 *
 * Build: cc -std=c11 -o metadata metadata.c -lamd_comgr
 */
#include <amd_comgr/amd_comgr.h>
#include <stdio.h>
#include <stdlib.h>

static void check(amd_comgr_status_t status, const char *what) {
  if (status == AMD_COMGR_STATUS_SUCCESS)
    return;
  fprintf(stderr, "metadata: %s\n", what);
  exit(2);
}

static char *text(amd_comgr_metadata_node_t map, const char *key) {
  amd_comgr_metadata_node_t node;
  check(amd_comgr_metadata_lookup(map, key, &node), key);
  size_t size = 0;
  check(amd_comgr_get_metadata_string(node, &size, NULL), key);
  char *found = malloc(size);
  check(amd_comgr_get_metadata_string(node, &size, found), key);
  amd_comgr_destroy_metadata(node);
  return found;
}

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file || fseek(file, 0, SEEK_END))
    return 2;
  size_t size = (size_t)ftell(file);
  rewind(file);
  char *bytes = malloc(size);
  if (fread(bytes, 1, size, file) != size)
    return 2;
  amd_comgr_data_t data;
  check(amd_comgr_create_data(AMD_COMGR_DATA_KIND_EXECUTABLE, &data), "create");
  check(amd_comgr_set_data(data, size, bytes), "set");
  size_t length = 0;
  check(amd_comgr_get_data_isa_name(data, &length, NULL), "ISA");
  char *isa = malloc(length);
  check(amd_comgr_get_data_isa_name(data, &length, isa), "ISA");
  puts(isa);
  amd_comgr_metadata_node_t metadata, kernels;
  check(amd_comgr_get_data_metadata(data, &metadata), "metadata");
  check(amd_comgr_metadata_lookup(metadata, "amdhsa.kernels", &kernels), "kernels");
  size_t count = 0;
  check(amd_comgr_get_metadata_list_size(kernels, &count), "number of kernels");
  for (size_t i = 0; i < count; i++) {
    amd_comgr_metadata_node_t kernel;
    check(amd_comgr_index_list_metadata(kernels, i, &kernel), "kernel");
    printf("%s %s %s\n", text(kernel, ".name"), text(kernel, ".symbol"), text(kernel, ".kernarg_segment_size"));
    amd_comgr_destroy_metadata(kernel);
  }
  return 0;
}
