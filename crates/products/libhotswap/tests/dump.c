/* Prints what libhotswap knows about a file: everything that the interface has, in lines that a test compares. */
#include <hotswap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static int good(hotswap_status status, hotswap_error *error) {
  if (status == HOTSWAP_OK)
    return 1;
  printf("error %d %s %s\n", (int)status, hotswap_error_code(error), hotswap_error_message(error));
  hotswap_error_free(error);
  failures++;
  return 0;
}
static hotswap_status last;
#define TRY(call) (last = (call), good(last, error))

static void print_number(const char *name, hotswap_number number) {
  if (number.flags & HOTSWAP_NUMBER_KNOWN)
    printf(" %s=%llu%s", name, (unsigned long long)number.value, number.flags & HOTSWAP_NUMBER_AT_LEAST ? "+" : "");
}

static int print_instruction(const hotswap_instruction *one, void *context) {
  (void)context;
  printf("inst %#llx %u %u %s", (unsigned long long)one->address, one->size, one->flags, one->text);
  printf("\t|");
  for (size_t i = 0; i < one->n_reads; i++)
    printf(" %s", one->reads[i].name);
  printf(" >");
  for (size_t i = 0; i < one->n_writes; i++)
    printf(" %s", one->writes[i].name);
  printf("\n");
  return 0;
}

static void print_function(const hotswap_image *image, size_t number, int instructions) {
  hotswap_error *error = NULL;
  hotswap_function f = {.struct_size = sizeof f};
  if (!TRY(hotswap_image_function(image, number, &f, &error)))
    return;
  printf("function %zu %s %#llx %llu kind=%u flags=%u wave=%u", number, f.name, (unsigned long long)f.address,
         (unsigned long long)f.size, f.kind, f.flags, f.wave_size);
  print_number("vgprs", f.own.vgprs);
  print_number("total", f.total.vgprs);
  print_number("scratch", f.total.scratch);
  printf(" callees");
  uint32_t callees[256];
  size_t count = 256;
  if (TRY(hotswap_function_callees(image, number, callees, &count, &error)))
    for (size_t i = 0; i < count; i++) {
      hotswap_function callee = {.struct_size = sizeof callee};
      if (TRY(hotswap_image_function(image, callees[i], &callee, &error)))
        printf(" %s", callee.name);
    }
  for (size_t i = 0; i < f.imports; i++) {
    const char *name;
    if (TRY(hotswap_function_import(image, number, i, &name, &error)))
      printf(" import:%s", name);
  }
  printf(" unknown=%zu\n", f.unknown_calls);
  for (size_t i = 0; i < f.aliases; i++) {
    const char *name;
    if (TRY(hotswap_function_alias(image, number, i, &name, &error)))
      printf("alias %zu %s\n", number, name);
  }
  size_t again = 0;
  uint64_t offset = 0;
  if (f.size && TRY(hotswap_image_function_at(image, f.address + f.size - 1, &again, &offset, &error)))
    if (again != number || offset != f.size - 1)
      failures++, printf("mismatch: %s is not found at its last byte\n", f.name);
  if (instructions)
    TRY(hotswap_function_instructions(image, number, print_instruction, NULL, &error));
  char file[512];
  size_t size = sizeof file;
  uint32_t line = 0;
  if (hotswap_image_source_line(image, f.address, file, &size, &line, NULL) == HOTSWAP_OK)
    printf("line %s %s:%u\n", f.name, file, line);
}

static void print_image(const hotswap_image *image, int instructions) {
  hotswap_error *error = NULL;
  hotswap_image_info info = {.struct_size = sizeof info};
  if (!TRY(hotswap_image_info_get(image, &info, &error)))
    return;
  printf("image %s flags=%u functions=%zu kernels=%zu imports=%zu hash=%s\n", info.target, info.flags, info.functions,
         info.kernels, info.imports, info.code_hash);
  for (size_t i = 0; i < info.warnings; i++) {
    const char *message;
    if (TRY(hotswap_image_warning(image, i, &message, &error)))
      printf("warning %s\n", message);
  }
  for (size_t i = 0; i < info.functions; i++)
    print_function(image, i, instructions);
  for (size_t i = 0; i < info.kernels; i++) {
    hotswap_kernel kernel = {.struct_size = sizeof kernel};
    if (!TRY(hotswap_image_kernel(image, i, &kernel, &error)))
      continue;
    printf("kernel %zu %#llx kernarg=%llu complete=%u reaches", kernel.function,
           (unsigned long long)kernel.descriptor_address, (unsigned long long)kernel.kernarg_size, kernel.complete);
    size_t count = kernel.reachable;
    uint32_t *reachable = calloc(count + 1, sizeof *reachable);
    if (TRY(hotswap_kernel_reachable(image, i, reachable, &count, &error)))
      for (size_t n = 0; n < count; n++)
        printf(" %u", reachable[n]);
    printf("\n");
    free(reachable);
  }
  for (size_t i = 0; i < info.imports; i++) {
    hotswap_import import = {.struct_size = sizeof import};
    if (TRY(hotswap_image_import(image, i, &import, &error)))
      printf("import %s slots=%zu users=%zu\n", import.name, import.slots, import.users);
  }
}

static void print_loaded(const hotswap_image *image, int argc, char **argv) {
  hotswap_external externals[16];
  size_t n = 0;
  for (int i = 0; i + 1 < argc && n < 16; i += 2, n++)
    externals[n].name = argv[i], externals[n].address = strtoull(argv[i + 1], NULL, 0);
  hotswap_error *error = NULL;
  hotswap_loaded *loaded = NULL;
  if (!TRY(hotswap_image_load(image, 0x7f0000000000, externals, n, &loaded, &error)))
    return;
  hotswap_loaded_info info = {.struct_size = sizeof info};
  if (TRY(hotswap_loaded_info_get(loaded, &info, &error)))
    printf("loaded %#llx segments=%zu relocations=%zu undefined=%zu\n", (unsigned long long)info.base, info.segments,
           info.relocations, info.undefined);
  for (size_t i = 0; i < info.relocations; i++) {
    hotswap_relocation one = {.struct_size = sizeof one};
    if (TRY(hotswap_loaded_relocation(loaded, i, &one, &error)))
      printf("relocation %#llx type=%u applied=%u %#llx %s\n", (unsigned long long)one.address, one.type, one.applied,
             (unsigned long long)one.value, one.symbol);
  }
  for (size_t i = 0; i < info.undefined; i++) {
    const char *name;
    if (TRY(hotswap_loaded_undefined(loaded, i, &name, &error)))
      printf("undefined %s\n", name);
  }
  for (size_t i = 0; i < info.segments; i++) {
    hotswap_segment one = {.struct_size = sizeof one};
    unsigned sum = 0;
    if (TRY(hotswap_loaded_segment(loaded, i, &one, &error))) {
      for (uint64_t at = 0; at < one.size; at++)
        sum = sum * 31 + one.bytes[at];
      printf("segment %#llx %llu flags=%u sum=%u\n", (unsigned long long)one.address, (unsigned long long)one.size,
             one.flags, sum);
    }
  }
  hotswap_loaded_free(loaded);
}

int main(int argc, char **argv) {
  hotswap_error *error = NULL;
  hotswap_file *file = NULL;
  if (argc < 2 || !TRY(hotswap_file_open(argv[1], &file, &error)))
    return 1;
  const char *isa = argc > 2 ? argv[2] : "";
  size_t entries = 0, problems = 0;
  TRY(hotswap_file_entry_count(file, &entries, &error));
  TRY(hotswap_file_problem_count(file, &problems, &error));
  for (size_t i = 0; i < problems; i++) {
    const char *message;
    if (TRY(hotswap_file_problem(file, i, &message, &error)))
      printf("problem %s\n", message);
  }
  for (size_t i = 0; i < entries; i++) {
    hotswap_entry entry = {.struct_size = sizeof entry};
    if (TRY(hotswap_file_entry(file, i, &entry, &error)))
      printf("entry %zu kind=%u container=%u size=%llu id=%s target=%s\n", i, entry.kind, entry.container,
             (unsigned long long)entry.size, entry.id, entry.target);
  }
  size_t entry = 0;
  if (*isa) {
    hotswap_choice choice = {.struct_size = sizeof choice};
    if (!TRY(hotswap_file_best_entry(file, isa, SIZE_MAX, 0, &choice, &error)))
      return hotswap_file_free(file), 1;
    printf("best %zu route=%u source=%s: %s\n", choice.entry, choice.route, choice.source, choice.rule);
    entry = choice.entry;
  }
  hotswap_image *image = NULL;
  if (TRY(hotswap_file_image(file, entry, &image, &error))) {
    hotswap_file_free(file);
    file = NULL;
    print_image(image, argc > 3 && !strcmp(argv[3], "instructions"));
    if (argc > 3 && !strcmp(argv[3], "load"))
      print_loaded(image, argc - 4, argv + 4);
    hotswap_image_free(image);
  }
  hotswap_file_free(file);
  return failures ? 1 : 0;
}
