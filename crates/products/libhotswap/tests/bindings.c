/* The calls of hotswap_binding on a user and a library: the numbers, wrong numbers, a runtime that fails, threads, and files
 * that are damaged everywhere. Arguments: user, library, number of damaged files. */
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

static const hotswap_hsa_handle executable = {7}, agent = {8};
static int defined, fails;
static uint64_t defined_at;
static int define(hotswap_hsa_handle e, hotswap_hsa_handle a, const char *name, void *address) {
  EXPECT(e.handle == 7 && a.handle == 8 && !strcmp(name, "__hotswap_import.lib_fn"));
  defined++, defined_at = (uint64_t)address;
  return fails ? 0x1014 : 0;
}

static unsigned char user_bytes[1 << 20], library_bytes[1 << 20];
static size_t user_size, library_size;
static size_t read_file(const char *path, unsigned char *bytes) {
  FILE *file = fopen(path, "rb");
  size_t size = file ? fread(bytes, 1, 1 << 20, file) : 0;
  if (file)
    fclose(file);
  return size;
}
static hotswap_image *image(const void *bytes, size_t size) {
  hotswap_image *made = NULL;
  hotswap_image_from_memory(bytes, size, &made, NULL);
  return made;
}

/* Too little at first: nothing is defined. */
static void short_user(const hotswap_binding *binding) {
  const size_t no = (size_t)-1;
  hotswap_binding_info info = {.struct_size = sizeof info};
  EXPECT(hotswap_binding_info_get(binding, &info, NULL) == HOTSWAP_OK);
  EXPECT(info.imports == 1 && info.budgets == 1 && info.problems >= 1 && !info.loadable);
  if (failures)
    return;
  INVALID(hotswap_binding_info_get(binding, NULL, NULL));
  info.struct_size = 8;
  INVALID(hotswap_binding_info_get(binding, &info, NULL));
  hotswap_bound_import import = {.struct_size = sizeof import};
  EXPECT(hotswap_binding_import(binding, 0, &import, NULL) == HOTSWAP_OK && import.library == 0 && import.address);
  EXPECT(!strcmp(import.function, "lib_fn") && !strcmp(import.symbol, "__hotswap_import.lib_fn"));
  INVALID(hotswap_binding_import(binding, 1, &import, NULL));
  INVALID(hotswap_binding_import(binding, no, &import, NULL));
  INVALID(hotswap_binding_import(binding, 0, NULL, NULL));
  hotswap_budget budget = {.struct_size = sizeof budget};
  EXPECT(hotswap_binding_budget(binding, 0, &budget, NULL) == HOTSWAP_OK);
  EXPECT(!strcmp(budget.kernel, "k_use") && !strcmp(budget.forced_by, "lib_fn"));
  EXPECT(budget.needs.vgprs > budget.has.vgprs && budget.needs.scratch > budget.has.scratch);
  EXPECT(budget.granted.vgprs >= budget.has.vgprs && budget.granted.vgprs < budget.needs.vgprs);
  INVALID(hotswap_binding_budget(binding, no, &budget, NULL));
  /* A caller with the first header that has the structure. */
  budget.struct_size = offsetof(hotswap_budget, granted);
  budget.granted.vgprs = 7;
  EXPECT(hotswap_binding_budget(binding, 0, &budget, NULL) == HOTSWAP_OK && budget.granted.vgprs == 7);
  budget.struct_size = 0;
  INVALID(hotswap_binding_budget(binding, 0, &budget, NULL));
  const char *text = NULL;
  EXPECT(hotswap_binding_problem(binding, 0, &text, NULL) == HOTSWAP_OK && strstr(text, "k_use"));
  INVALID(hotswap_binding_problem(binding, no, &text, NULL));
  INVALID(hotswap_binding_problem(binding, 0, NULL, NULL));
  INVALID(hotswap_binding_prepare(binding, NULL, NULL));
  const int64_t delta = 0x7000;
  hotswap_error *error = NULL;
  EXPECT(hotswap_binding_define(binding, define, executable, agent, &delta, 1, &error) == HOTSWAP_REFUSED);
  EXPECT(error && strstr(hotswap_error_message(error), "k_use") && !defined);
  hotswap_error_free(error);
}

static void enough(const hotswap_binding *binding) {
  hotswap_binding_info info = {.struct_size = sizeof info};
  EXPECT(hotswap_binding_info_get(binding, &info, NULL) == HOTSWAP_OK && info.loadable && !info.budgets);
  hotswap_bound_import import = {.struct_size = sizeof import};
  EXPECT(hotswap_binding_import(binding, 0, &import, NULL) == HOTSWAP_OK);
  if (failures)
    return;
  const int64_t delta[2] = {0x7000, 0};
  INVALID(hotswap_binding_define(binding, NULL, executable, agent, delta, 1, NULL));
  INVALID(hotswap_binding_define(binding, define, executable, agent, NULL, 1, NULL));
  INVALID(hotswap_binding_define(binding, define, executable, agent, delta, 0, NULL));
  INVALID(hotswap_binding_define(binding, define, executable, agent, delta, 2, NULL));
  EXPECT(!defined);
  EXPECT(hotswap_binding_define(binding, define, executable, agent, delta, 1, NULL) == HOTSWAP_OK && defined == 1);
  EXPECT(defined_at == import.address + 0x7000);
  hotswap_error *error = NULL;
  fails = 1;
  EXPECT(hotswap_binding_define(binding, define, executable, agent, delta, 1, &error) == HOTSWAP_CANNOT_READ);
  EXPECT(error && strstr(hotswap_error_message(error), "0x1014"));
  hotswap_error_free(error);
}

/* Each thread owns a reference. */
static void *use(void *shared) {
  hotswap_binding *binding = shared;
  size_t sum = 0;
  for (int round = 0; round < 50; round++) {
    hotswap_binding_info info = {.struct_size = sizeof info};
    hotswap_budget budget = {.struct_size = sizeof budget};
    hotswap_binding *more = hotswap_binding_retain(binding);
    hotswap_binding_info_get(more, &info, NULL);
    hotswap_binding_budget(more, 0, &budget, NULL);
    sum += info.budgets * strlen(budget.kernel);
    hotswap_output *output = NULL;
    if (round == 0 && hotswap_binding_prepare(more, &output, NULL) != HOTSWAP_OK)
      sum = 0;
    hotswap_output_free(output);
    hotswap_binding_free(more);
  }
  hotswap_binding_free(binding);
  return (void *)sum;
}
static void threads(const hotswap_binding *binding) {
  pthread_t all[4];
  void *sums[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&all[i], NULL, use, hotswap_binding_retain(binding));
  for (int i = 0; i < 4; i++)
    pthread_join(all[i], &sums[i]);
  EXPECT(sums[0] && sums[0] == sums[1] && sums[1] == sums[2] && sums[2] == sums[3]);
}

/* Every call on what two damaged files give; the statuses do not matter. */
static void try_all(const void *user, size_t size, const void *library, size_t library_length) {
  hotswap_image *one = image(user, size), *other = image(library, library_length);
  const hotswap_image *libraries[] = {other, one, other};
  for (size_t count = 0; count <= 3; count++) {
    hotswap_binding *binding = NULL;
    hotswap_error *error = NULL;
    hotswap_binding_check(one, libraries, count, &binding, &error);
    hotswap_error_free(error);
    hotswap_binding_info info = {.struct_size = sizeof info};
    hotswap_binding_info_get(binding, &info, NULL);
    for (size_t i = 0; i <= info.imports && i < 9; i++) {
      hotswap_bound_import import = {.struct_size = sizeof import};
      hotswap_binding_import(binding, i, &import, NULL);
    }
    for (size_t i = 0; i <= info.budgets && i < 9; i++) {
      hotswap_budget budget = {.struct_size = sizeof budget};
      hotswap_binding_budget(binding, i, &budget, NULL);
    }
    size_t length = 0;
    for (size_t i = 0; i <= info.problems && i < 9; i++) {
      const char *text = "";
      hotswap_binding_problem(binding, i, &text, NULL);
      length += strlen(text);
    }
    hotswap_output *output = NULL;
    hotswap_binding_prepare(binding, &output, NULL);
    hotswap_output_free(output);
    hotswap_binding_free(hotswap_binding_retain(binding));
    hotswap_binding_free(binding);
  }
  hotswap_image_free(one), hotswap_image_free(other);
}
static size_t damage(size_t images) {
  unsigned char *copy = malloc(user_size > library_size ? user_size : library_size);
  uint64_t state = 0x9e3779b97f4a7c15;
  for (size_t n = 0; n < images; n++) {
    size_t size = n % 2 ? library_size : user_size;
    memcpy(copy, n % 2 ? library_bytes : user_bytes, size);
    for (int flips = 0; flips < 1 + (int)(n % 3); flips++) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      copy[(state >> 16) % size] ^= (unsigned char)(1 << (state & 7));
    }
    if (n % 2)
      try_all(user_bytes, user_size, copy, size);
    else
      try_all(copy, size, library_bytes, library_size);
  }
  free(copy);
  return images;
}

int main(int argc, char **argv) {
  if (argc < 4 || !(user_size = read_file(argv[1], user_bytes)) || !(library_size = read_file(argv[2], library_bytes)))
    return 2;
  hotswap_image *user = image(user_bytes, user_size), *library = image(library_bytes, library_size);
  const hotswap_image *libraries[] = {library};
  hotswap_binding *binding = NULL;
  EXPECT(hotswap_binding_check(user, libraries, 1, &binding, NULL) == HOTSWAP_OK);
  hotswap_image_free(user), hotswap_image_free(library);
  short_user(binding);
  threads(binding);
  hotswap_output *output = NULL;
  const void *bytes = NULL;
  size_t size = 0;
  EXPECT(hotswap_binding_prepare(binding, &output, NULL) == HOTSWAP_OK);
  EXPECT(hotswap_output_bytes(output, &bytes, &size, NULL) == HOTSWAP_OK && size);
  hotswap_binding_free(binding);
  user = image(bytes, size), library = image(library_bytes, library_size);
  libraries[0] = library;
  EXPECT(hotswap_binding_check(user, libraries, 1, &binding, NULL) == HOTSWAP_OK);
  enough(binding);
  hotswap_binding_free(binding);
  hotswap_image_free(user), hotswap_image_free(library), hotswap_output_free(output);
  printf("%zu damaged files\n", damage(strtoul(argv[3], NULL, 10)));
  return failures ? 1 : 0;
}
