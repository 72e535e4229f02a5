/* Asks libamd_comgr for code objects the way the HIP runtime does.
 *
 *   lookup FILE ISA...        for example: lookup a.hipfb amdgcn-amd-amdhsa--gfx1031
 *   lookup -o OUT FILE ISA    also writes the code object to OUT
 *
 * One line on standard output for each ISA:
 *   ISA offset OFFSET size SIZE e_flags FLAGS    (plain bundle; the offset counts from its start)
 *   ISA size SIZE e_flags FLAGS                  (compressed bundle)
 *   ISA absent
 * Exit code: 0 all found, 1 one is absent, 2 comgr or the command line failed.
 *
 * A plain bundle goes to amd_comgr_lookup_code_object with its first 4096 bytes only, because that
 * is all the HIP runtime hands over. A compressed one goes through the unbundling action, with
 * comgr's disk cache off: its key is the header alone, so it could answer for another bundle.
 *
 * Build: cc -std=c11 -o lookup lookup.c -lamd_comgr
 */
#define _POSIX_C_SOURCE 200112L
#include <amd_comgr/amd_comgr.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOUND = 0, ABSENT = 1, FAILED = 2, HIP_READS = 4096, MAX_ISAS = 128, NAME_SIZE = 256 };

static void fail(const char *what) {
  fprintf(stderr, "lookup: %s\n", what);
  exit(FAILED);
}

static void check(amd_comgr_status_t status, const char *what) {
  if (status == AMD_COMGR_STATUS_SUCCESS)
    return;
  const char *text = "unknown status";
  amd_comgr_status_string(status, &text);
  fprintf(stderr, "lookup: %s: %s\n", what, text);
  exit(FAILED);
}

static void *allocate(size_t size) {
  void *memory = malloc(size ? size : 1);
  if (!memory)
    fail("out of memory");
  return memory;
}

static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0)
    fail("cannot read the file");
  long end = ftell(file);
  if (end < 0 || fseek(file, 0, SEEK_SET) != 0)
    fail("cannot read the file");
  *size = (size_t)end;
  char *bytes = allocate(*size);
  if (fread(bytes, 1, *size, file) != *size)
    fail("cannot read the file");
  fclose(file);
  return bytes;
}

static void write_file(const char *path, const char *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
    fail("cannot write the output");
}

/* e_flags of an ELF64, little-endian; 0 for anything else. */
static uint32_t e_flags(const char *bytes, size_t size) {
  const unsigned char *elf = (const unsigned char *)bytes;
  if (size < 64 || memcmp(bytes, "\177ELF", 4) != 0)
    return 0;
  return elf[48] | (uint32_t)elf[49] << 8 | (uint32_t)elf[50] << 16 | (uint32_t)elf[51] << 24;
}

static int lookup_plain(const char *bytes, size_t size, const char **isas, size_t count, const char *output) {
  amd_comgr_data_t data;
  check(amd_comgr_create_data(AMD_COMGR_DATA_KIND_FATBIN, &data), "create data");
  check(amd_comgr_set_data(data, size < HIP_READS ? size : HIP_READS, bytes), "set data");
  amd_comgr_code_object_info_t infos[MAX_ISAS];
  memset(infos, 0, sizeof infos);
  for (size_t i = 0; i < count; ++i)
    infos[i].isa = isas[i];
  check(amd_comgr_lookup_code_object(data, infos, count), "lookup");
  int result = FOUND;
  for (size_t i = 0; i < count; ++i) {
    uint64_t offset = infos[i].offset, length = infos[i].size;
    if (length == 0) {
      printf("%s absent\n", isas[i]);
      result = ABSENT;
      continue;
    }
    if (offset > size || length > size - offset)
      fail("comgr names bytes outside of the bundle");
    printf("%s offset %llu size %llu e_flags 0x%08x\n", isas[i], (unsigned long long)offset,
           (unsigned long long)length, (unsigned)e_flags(bytes + offset, length));
    if (output)
      write_file(output, bytes + offset, length);
  }
  check(amd_comgr_release_data(data), "release data");
  return result;
}

/* The bytes of one result of the unbundling action. */
static char *result_bytes(amd_comgr_data_set_t set, size_t index, size_t *size) {
  amd_comgr_data_t data;
  check(amd_comgr_action_data_get_data(set, AMD_COMGR_DATA_KIND_EXECUTABLE, index, &data), "get result");
  check(amd_comgr_get_data(data, size, NULL), "size of result");
  char *bytes = allocate(*size);
  check(amd_comgr_get_data(data, size, bytes), "read result");
  check(amd_comgr_release_data(data), "release result");
  return bytes;
}

static int unbundle(const char *bytes, size_t size, const char **isas, size_t count, const char *output) {
  static char names[MAX_ISAS][NAME_SIZE];
  const char *ids[MAX_ISAS];
  for (size_t i = 0; i < count; ++i) {
    if (snprintf(names[i], NAME_SIZE, "hipv4-%s", isas[i]) >= NAME_SIZE)
      fail("the ISA name is too long");
    ids[i] = names[i];
  }
  amd_comgr_data_t data;
  amd_comgr_data_set_t in, out;
  amd_comgr_action_info_t action;
  check(amd_comgr_create_data(AMD_COMGR_DATA_KIND_OBJ_BUNDLE, &data), "create data");
  check(amd_comgr_set_data(data, size, bytes), "set data");
  check(amd_comgr_set_data_name(data, "hipfatbin"), "name data");
  check(amd_comgr_create_data_set(&in), "create input set");
  check(amd_comgr_create_data_set(&out), "create output set");
  check(amd_comgr_data_set_add(in, data), "add data");
  check(amd_comgr_create_action_info(&action), "create action");
  check(amd_comgr_action_info_set_bundle_entry_ids(action, ids, count), "set entry IDs");
  check(amd_comgr_do_action(AMD_COMGR_ACTION_UNBUNDLE, action, in, out), "unbundle");
  size_t results = 0;
  check(amd_comgr_action_data_count(out, AMD_COMGR_DATA_KIND_EXECUTABLE, &results), "count results");
  if (results != count)
    fail("comgr gives another number of results than asked for");
  int result = FOUND;
  for (size_t i = 0; i < count; ++i) {
    size_t length = 0;
    char *object = result_bytes(out, i, &length);
    if (length == 0) {
      printf("%s absent\n", isas[i]);
      result = ABSENT;
    } else {
      printf("%s size %zu e_flags 0x%08x\n", isas[i], length, (unsigned)e_flags(object, length));
      if (output)
        write_file(output, object, length);
    }
    free(object);
  }
  check(amd_comgr_destroy_action_info(action), "destroy action");
  check(amd_comgr_destroy_data_set(in), "destroy input set");
  check(amd_comgr_destroy_data_set(out), "destroy output set");
  check(amd_comgr_release_data(data), "release data");
  return result;
}

int main(int argc, char **argv) {
  const char *output = NULL;
  int first = 1;
  if (argc > 2 && strcmp(argv[1], "-o") == 0) {
    output = argv[2];
    first = 3;
  }
  int isas = argc - first - 1;
  if (isas < 1 || isas > MAX_ISAS || (output && isas != 1)) {
    fprintf(stderr, "usage: lookup [-o OUT] FILE ISA...\n");
    return FAILED;
  }
  if (setenv("AMD_COMGR_CACHE", "0", 1) != 0)
    fail("cannot switch comgr's cache off");
  size_t size = 0;
  char *bytes = read_file(argv[first], &size);
  const char **names = (const char **)(argv + first + 1);
  bool compressed = size >= 4 && memcmp(bytes, "CCOB", 4) == 0;
  int result = (compressed ? unbundle : lookup_plain)(bytes, size, names, (size_t)isas, output);
  free(bytes);
  return result;
}
