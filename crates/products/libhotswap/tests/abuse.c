/* Calls every function with null pointers, wrong numbers, short buffers, and images that are damaged everywhere. Prints one
 * line for each expectation that does not hold, and the number of damaged images at the end. */
#include <hotswap.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
#define EXPECT(what)                                                                                                   \
  do {                                                                                                                 \
    if (!(what))                                                                                                       \
      printf("line %d: %s\n", __LINE__, #what), failures++;                                                            \
  } while (0)
#define INVALID(call) EXPECT((call) == HOTSWAP_INVALID_ARGUMENT)

static int stop(const hotswap_instruction *one, void *context) {
  (void)one;
  return --*(int *)context <= 0;
}
static int count_bytes(const hotswap_instruction *one, void *context) {
  size_t registers = 0;
  for (size_t i = 0; i < one->n_reads; i++)
    registers += strlen(one->reads[i].name);
  for (size_t i = 0; i < one->n_writes; i++)
    registers += strlen(one->writes[i].name);
  *(size_t *)context += one->size + 0 * (registers + strlen(one->text) + strlen(one->mnemonic) + one->bytes[0]);
  return 0;
}
static int any_object(const hotswap_process_object *one, void *context) {
  (void)one, (void)context;
  return 0;
}

static void nulls(void) {
  hotswap_error *e = NULL;
  INVALID(hotswap_file_open(NULL, NULL, NULL));
  INVALID(hotswap_file_open("/", NULL, NULL));
  EXPECT(hotswap_error_message(NULL) == NULL && hotswap_error_code(NULL) == NULL);
  hotswap_error_free(NULL);
  hotswap_file *f = (hotswap_file *)&f;
  EXPECT(hotswap_file_open("/no/such/file", &f, &e) == HOTSWAP_CANNOT_READ && f == NULL);
  EXPECT(e && strstr(hotswap_error_message(e), "/no/such/file") && !strcmp(hotswap_error_code(e), "HS0501"));
  hotswap_error_free(e);
  EXPECT(hotswap_file_from_memory(NULL, 0, &f, NULL) == HOTSWAP_OK || f == NULL);
  hotswap_file_free(f);
  INVALID(hotswap_file_from_memory(NULL, 7, &f, NULL));
  EXPECT(hotswap_file_retain(NULL) == NULL && hotswap_image_retain(NULL) == NULL && hotswap_loaded_retain(NULL) == NULL);
  hotswap_file_free(NULL), hotswap_image_free(NULL), hotswap_loaded_free(NULL), hotswap_output_free(NULL);
  INVALID(hotswap_file_entry_count(NULL, NULL, NULL));
  INVALID(hotswap_file_entry(NULL, 0, NULL, NULL));
  INVALID(hotswap_file_problem_count(NULL, NULL, NULL));
  INVALID(hotswap_file_problem(NULL, 0, NULL, NULL));
  INVALID(hotswap_file_best_entry(NULL, NULL, 0, 0, NULL, NULL));
  INVALID(hotswap_bytes_for(NULL, NULL, 0, 0, NULL, NULL, NULL));
  INVALID(hotswap_file_image(NULL, 0, NULL, NULL));
  INVALID(hotswap_image_from_memory(NULL, 1, NULL, NULL));
  INVALID(hotswap_image_bytes(NULL, NULL, NULL, NULL));
  INVALID(hotswap_image_info_get(NULL, NULL, NULL));
  INVALID(hotswap_image_warning(NULL, 0, NULL, NULL));
  INVALID(hotswap_image_producer(NULL, 0, NULL, NULL));
  INVALID(hotswap_image_variable(NULL, 0, NULL, NULL));
  INVALID(hotswap_image_function(NULL, 0, NULL, NULL));
  INVALID(hotswap_image_function_named(NULL, NULL, NULL, NULL));
  INVALID(hotswap_image_function_at(NULL, 0, NULL, NULL, NULL));
  INVALID(hotswap_function_alias(NULL, 0, 0, NULL, NULL));
  INVALID(hotswap_function_import(NULL, 0, 0, NULL, NULL));
  INVALID(hotswap_function_callees(NULL, 0, NULL, NULL, NULL));
  INVALID(hotswap_function_unknown_calls(NULL, 0, NULL, NULL, NULL));
  INVALID(hotswap_image_kernel(NULL, 0, NULL, NULL));
  INVALID(hotswap_kernel_reachable(NULL, 0, NULL, NULL, NULL));
  INVALID(hotswap_image_import(NULL, 0, NULL, NULL));
  INVALID(hotswap_import_slots(NULL, 0, NULL, NULL, NULL));
  INVALID(hotswap_import_users(NULL, 0, NULL, NULL, NULL));
  INVALID(hotswap_function_instructions(NULL, 0, NULL, NULL, NULL));
  INVALID(hotswap_image_instructions(NULL, 0, 0, NULL, NULL, NULL));
  INVALID(hotswap_image_source_line(NULL, 0, NULL, NULL, NULL, NULL));
  INVALID(hotswap_image_load(NULL, 0, NULL, 0, NULL, NULL));
  INVALID(hotswap_loaded_info_get(NULL, NULL, NULL));
  INVALID(hotswap_loaded_segment(NULL, 0, NULL, NULL));
  INVALID(hotswap_loaded_relocation(NULL, 0, NULL, NULL));
  INVALID(hotswap_loaded_undefined(NULL, 0, NULL, NULL));
  INVALID(hotswap_retarget(NULL, 1, NULL, 0, NULL, NULL));
  INVALID(hotswap_rewrite(NULL, 1, NULL, 0, NULL, NULL));
  INVALID(hotswap_output_bytes(NULL, NULL, NULL, NULL));
  EXPECT(hotswap_output_report(NULL) == NULL);
  INVALID(hotswap_process_iterate(NULL, NULL, NULL, NULL));
  hotswap_hsa_loader none = {.struct_size = sizeof none};
  INVALID(hotswap_process_iterate(&none, any_object, NULL, NULL));
  const hotswap_image *nothing = NULL;
  hotswap_binding *binding = NULL;
  INVALID(hotswap_binding_check(NULL, NULL, 0, NULL, NULL));
  INVALID(hotswap_binding_check(NULL, &nothing, 1, &binding, NULL));
  INVALID(hotswap_binding_info_get(NULL, NULL, NULL));
  INVALID(hotswap_binding_import(NULL, 0, NULL, NULL));
  INVALID(hotswap_binding_budget(NULL, 0, NULL, NULL));
  INVALID(hotswap_binding_problem(NULL, 0, NULL, NULL));
  INVALID(hotswap_binding_prepare(NULL, NULL, NULL));
  INVALID(hotswap_binding_define(NULL, NULL, (hotswap_hsa_handle){0}, (hotswap_hsa_handle){0}, NULL, 0, NULL));
  EXPECT(hotswap_binding_retain(NULL) == NULL && binding == NULL);
  hotswap_binding_free(NULL);
}

static void numbers(const hotswap_image *image) {
  const size_t no = (size_t)-1;
  hotswap_image_info info = {.struct_size = sizeof info};
  EXPECT(hotswap_image_info_get(image, &info, NULL) == HOTSWAP_OK && info.functions > 3);
  info.struct_size = sizeof info - 8;
  INVALID(hotswap_image_info_get(image, &info, NULL));
  info.struct_size = 0;
  INVALID(hotswap_image_info_get(image, &info, NULL));
  info.struct_size = no;
  INVALID(hotswap_image_info_get(image, &info, NULL));
  struct {
    hotswap_kernel known;
    uint64_t later[4];
  } newer = {.known.struct_size = sizeof newer, .later = {1, 2, 3, 4}};
  EXPECT(hotswap_image_kernel(image, 0, &newer.known, NULL) == HOTSWAP_OK);
  EXPECT(newer.known.struct_size == sizeof newer && newer.later[0] == 0 && newer.later[3] == 0);
  INVALID(hotswap_image_kernel(image, 0, NULL, NULL));
  hotswap_function function = {.struct_size = sizeof function};
  INVALID(hotswap_image_function(image, no, &function, NULL));
  hotswap_kernel kernel = {.struct_size = sizeof kernel};
  INVALID(hotswap_image_kernel(image, no, &kernel, NULL));
  hotswap_import import = {.struct_size = sizeof import};
  INVALID(hotswap_image_import(image, no, &import, NULL));
  const char *text;
  INVALID(hotswap_image_warning(image, no, &text, NULL));
  INVALID(hotswap_image_producer(image, no, &text, NULL));
  hotswap_variable variable = {.struct_size = sizeof variable};
  INVALID(hotswap_image_variable(image, no, &variable, NULL));
  INVALID(hotswap_function_alias(image, 0, no, &text, NULL));
  size_t number = 77, count = 0, all = 0;
  uint64_t offset = 77;
  EXPECT(hotswap_image_function_named(image, "no such function", &number, NULL) == HOTSWAP_NOT_FOUND && number == 77);
  INVALID(hotswap_image_function_named(image, "\xff", &number, NULL));
  EXPECT(hotswap_image_function_at(image, UINT64_MAX, &number, &offset, NULL) == HOTSWAP_NOT_FOUND && offset == 77);
  EXPECT(hotswap_image_function(image, 0, &function, NULL) == HOTSWAP_OK);
  EXPECT(hotswap_image_function_at(image, function.address, &number, NULL, NULL) == HOTSWAP_OK && number == 0);
  EXPECT(hotswap_kernel_reachable(image, 0, NULL, &all, NULL) == HOTSWAP_SHORT_BUFFER && all >= 2);
  uint32_t list[3] = {99, 99, 99};
  count = 1;
  EXPECT(hotswap_kernel_reachable(image, 0, list, &count, NULL) == HOTSWAP_SHORT_BUFFER && count == all);
  EXPECT(list[0] != 99 && list[1] == 99);
  count = 1;
  INVALID(hotswap_kernel_reachable(image, 0, NULL, &count, NULL));
  int left = 2;
  EXPECT(hotswap_function_instructions(image, 0, stop, &left, NULL) == HOTSWAP_STOPPED && left == 0);
  EXPECT(hotswap_image_instructions(image, 1, 10, stop, &left, NULL) == HOTSWAP_NOT_FOUND);
  INVALID(hotswap_function_instructions(image, 0, NULL, NULL, NULL));
  hotswap_loaded *loaded = NULL;
  INVALID(hotswap_image_load(image, 0, NULL, 3, &loaded, NULL));
  hotswap_external unnamed = {NULL, 0};
  INVALID(hotswap_image_load(image, 0, &unnamed, 1, &loaded, NULL));
  EXPECT(loaded == NULL);
}

/* Every query on an image; the statuses do not matter. */
static void query(const void *bytes, size_t size) {
  hotswap_file *file = NULL;
  size_t entries = 0;
  if (hotswap_file_from_memory(bytes, size, &file, NULL) == HOTSWAP_OK)
    hotswap_file_entry_count(file, &entries, NULL);
  for (size_t i = 0; i < entries && i < 4; i++) {
    hotswap_image *part = NULL;
    hotswap_file_image(file, i, &part, NULL);
    hotswap_image_free(part);
  }
  hotswap_choice choice = {.struct_size = sizeof choice};
  hotswap_file_best_entry(file, "gfx1031", (size_t)-1, HOTSWAP_ALLOW_EXPERIMENTAL, &choice, NULL);
  hotswap_file_free(file);
  hotswap_image *image = NULL;
  if (hotswap_image_from_memory(bytes, size, &image, NULL) != HOTSWAP_OK)
    return;
  hotswap_image_info info = {.struct_size = sizeof info};
  hotswap_image_info_get(image, &info, NULL);
  for (size_t i = 0; i <= info.variables && i < 64; i++) {
    hotswap_variable variable = {.struct_size = sizeof variable};
    hotswap_image_variable(image, i, &variable, NULL);
  }
  for (size_t i = 0; i < info.functions && i < 64; i++) {
    hotswap_function function = {.struct_size = sizeof function};
    hotswap_image_function(image, i, &function, NULL);
    size_t sum = 0;
    hotswap_function_instructions(image, i, count_bytes, &sum, NULL);
    char name[64];
    size_t room = sizeof name;
    uint32_t line;
    hotswap_image_source_line(image, function.address, name, &room, &line, NULL);
  }
  hotswap_loaded *loaded = NULL;
  hotswap_image_load(image, 0x10000, NULL, 0, &loaded, NULL);
  hotswap_loaded_free(loaded);
  hotswap_binding *binding = NULL;
  const hotswap_image *libraries[] = {image, image};
  hotswap_binding_check(image, libraries, 2, &binding, NULL);
  hotswap_output *ready = NULL;
  hotswap_binding_prepare(binding, &ready, NULL);
  hotswap_output_free(ready);
  hotswap_binding_free(binding);
  hotswap_image_free(image);
  hotswap_output *output = NULL;
  hotswap_retarget(bytes, size, "gfx1031", 0, &output, NULL);
  hotswap_output_free(output);
}

static size_t damage(const unsigned char *bytes, size_t size, size_t images) {
  unsigned char *copy = malloc(size);
  uint64_t state = 0x9e3779b97f4a7c15;
  for (size_t n = 0; n < images; n++) {
    memcpy(copy, bytes, size);
    for (int flips = 0; flips < 1 + (int)(n % 3); flips++) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      /* Headers and tables, which are at both ends, more often than code. */
      size_t part = n % 4 ? (size < 4096 ? size : 4096) : size;
      size_t at = (state >> 16) % part;
      copy[n % 4 == 2 ? size - 1 - at : at] ^= (unsigned char)(1 << (state & 7)) | (n % 5 ? 0 : 0xff);
    }
    query(copy, n % 7 ? size : (state >> 20) % size);
  }
  free(copy);
  return images;
}

static void *use_all(void *image) {
  hotswap_image_info info = {.struct_size = sizeof info};
  hotswap_image_info_get(image, &info, NULL);
  size_t sum = 0, sizes = 0;
  for (size_t i = 0; i < info.functions; i++) {
    hotswap_function function = {.struct_size = sizeof function};
    hotswap_image_function(image, i, &function, NULL);
    sizes += function.size;
    hotswap_function_instructions(image, i, count_bytes, &sum, NULL);
  }
  hotswap_image_free(image);
  return (void *)(sum == sizes ? sum : 0);
}

/* The first queries come from four threads at once; each owns a reference. */
static void threads(const void *bytes, size_t size) {
  hotswap_image *image = NULL;
  pthread_t all[4];
  void *sums[4];
  EXPECT(hotswap_image_from_memory(bytes, size, &image, NULL) == HOTSWAP_OK);
  for (int i = 0; i < 4; i++)
    pthread_create(&all[i], NULL, use_all, hotswap_image_retain(image));
  hotswap_image_free(image);
  for (int i = 0; i < 4; i++)
    pthread_join(all[i], &sums[i]);
  EXPECT(sums[0] && sums[0] == sums[1] && sums[1] == sums[2] && sums[2] == sums[3]);
}

int main(int argc, char **argv) {
  FILE *file = argc > 2 ? fopen(argv[1], "rb") : NULL;
  if (!file)
    return 2;
  static unsigned char bytes[1 << 20];
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  hotswap_image *image = NULL;
  EXPECT(hotswap_image_from_memory(bytes, size, &image, NULL) == HOTSWAP_OK);
  nulls();
  numbers(image);
  hotswap_image_free(image);
  threads(bytes, size);
  printf("%zu damaged images\n", damage(bytes, size, strtoul(argv[2], NULL, 10)));
  return failures ? 1 : 0;
}
