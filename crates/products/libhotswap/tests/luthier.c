/* The facts that the instrumentation framework Luthier works out for itself, from hotswap.h, against an ELF reader of this file:
 * classes of symbols (kernel, kernel descriptor, device function, variable, external), entries and arguments of kernels, callees,
 * and a loader without a GPU that defers relocations. Arguments: a code object with static relocations (--emit-relocs), then two
 * that import a function of each other. */
#include <elf.h>
#include <hotswap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
#define EXPECT(what, name)                                                                                             \
  do {                                                                                                                 \
    if (!(what))                                                                                                       \
      printf("line %d: %s: %s\n", __LINE__, name, #what), failures++;                                                  \
  } while (0)

/* --- The truth: section headers and symbols, read without the library. --- */

typedef struct code_object {
  const unsigned char *bytes;
  size_t size;
  const Elf64_Shdr *sections;
  size_t n_sections;
  const Elf64_Sym *symbols, *dynamic;
  size_t n_symbols, n_dynamic;
  const char *names, *dynamic_names;
} code_object;

static code_object read_object(const char *path) {
  FILE *file = fopen(path, "rb");
  unsigned char *bytes = calloc(1, 1 << 20);
  code_object one = {.bytes = bytes, .size = file ? fread(bytes, 1, 1 << 20, file) : 0};
  if (!one.size)
    exit(2);
  fclose(file);
  const Elf64_Ehdr *header = (const void *)bytes;
  one.sections = (const void *)(bytes + header->e_shoff), one.n_sections = header->e_shnum;
  for (size_t i = 0; i < one.n_sections; i++) {
    const Elf64_Shdr *s = &one.sections[i];
    const char *names = (const char *)bytes + one.sections[s->sh_link].sh_offset;
    if (s->sh_type == SHT_SYMTAB)
      one.symbols = (const void *)(bytes + s->sh_offset), one.n_symbols = s->sh_size / sizeof(Elf64_Sym), one.names = names;
    if (s->sh_type == SHT_DYNSYM)
      one.dynamic = (const void *)(bytes + s->sh_offset), one.n_dynamic = s->sh_size / sizeof(Elf64_Sym),
      one.dynamic_names = names;
  }
  return one;
}
static int is_descriptor(const char *name, const Elf64_Sym *s) {
  size_t length = strlen(name);
  return ELF64_ST_TYPE(s->st_info) == STT_OBJECT && s->st_size == 64 && length > 3 && !strcmp(name + length - 3, ".kd");
}
/* The descriptor of a function; a kernel has one. */
static const Elf64_Sym *descriptor_of(const code_object *one, const char *function) {
  size_t length = strlen(function);
  for (size_t i = 0; i < one->n_dynamic; i++) {
    const char *name = one->dynamic_names + one->dynamic[i].st_name;
    if (is_descriptor(name, &one->dynamic[i]) && strlen(name) == length + 3 && !strncmp(name, function, length))
      return &one->dynamic[i];
  }
  return NULL;
}
/* The bytes of an address. */
static const unsigned char *at(const code_object *one, uint64_t address) {
  for (size_t i = 0; i < one->n_sections; i++) {
    const Elf64_Shdr *s = &one->sections[i];
    if ((s->sh_flags & SHF_ALLOC) && s->sh_type != SHT_NOBITS && address - s->sh_addr < s->sh_size)
      return one->bytes + s->sh_offset + (address - s->sh_addr);
  }
  return NULL;
}

/* --- The library's answers. --- */

static hotswap_image *image_of(const code_object *one) {
  hotswap_image *image = NULL;
  if (hotswap_image_from_memory(one->bytes, one->size, &image, NULL) != HOTSWAP_OK)
    exit(3);
  return image;
}
static hotswap_image_info info_of(const hotswap_image *image) {
  hotswap_image_info info = {.struct_size = sizeof info};
  hotswap_image_info_get(image, &info, NULL);
  return info;
}
static hotswap_function function_of(const hotswap_image *image, size_t number) {
  hotswap_function one = {.struct_size = sizeof one};
  hotswap_image_function(image, number, &one, NULL);
  return one;
}
static uint64_t address_of(const hotswap_image *image, const char *name) {
  size_t number = 0;
  return hotswap_image_function_named(image, name, &number, NULL) == HOTSWAP_OK ? function_of(image, number).address : 0;
}

static void classes(const code_object *one, const hotswap_image *image) {
  hotswap_image_info info = info_of(image);
  size_t kernels = 0, functions = 0, variables = 0, externals = 0, names = 0;
  for (size_t i = 1; i < one->n_symbols; i++) {
    const Elf64_Sym *s = &one->symbols[i];
    const char *name = one->names + s->st_name;
    int type = ELF64_ST_TYPE(s->st_info);
    if (s->st_shndx == SHN_UNDEF) {
      externals += *name != 0;
      continue;
    }
    if (type == STT_OBJECT && !is_descriptor(name, s)) {
      hotswap_variable variable = {.struct_size = sizeof variable};
      size_t n = 0;
      while (n < info.variables && (hotswap_image_variable(image, n, &variable, NULL) || strcmp(variable.name, name)))
        n++;
      EXPECT(n < info.variables && variable.address == s->st_value && variable.size == s->st_size, name);
      EXPECT(!(variable.flags & HOTSWAP_VARIABLE_EXPORTED) == (ELF64_ST_BIND(s->st_info) == STB_LOCAL), name);
      variables++;
    }
    if (type != STT_FUNC)
      continue;
    size_t number = 0;
    EXPECT(hotswap_image_function_named(image, name, &number, NULL) == HOTSWAP_OK, name);
    hotswap_function found = function_of(image, number);
    const Elf64_Sym *descriptor = descriptor_of(one, name);
    EXPECT(found.address == s->st_value && found.size == s->st_size, name);
    EXPECT((found.kind == HOTSWAP_FUNCTION_KERNEL) == (descriptor != NULL), name);
    kernels += descriptor != NULL, names++;
    functions += !descriptor && !strcmp(found.name, name);
  }
  EXPECT(info.kernels == kernels && info.functions == kernels + functions, "kernels and functions");
  EXPECT(info.variables == variables && info.imports == externals, "variables and externals");
  printf("classes: %zu kernels, %zu device functions of %zu names, %zu variables, %zu externals\n", kernels, functions,
         names, variables, externals);
}

/* Entry and arguments of a kernel as its descriptor has them. */
static void entries(const code_object *one, const hotswap_image *image) {
  hotswap_image_info info = info_of(image);
  for (size_t i = 0; i < info.kernels; i++) {
    hotswap_kernel kernel = {.struct_size = sizeof kernel};
    hotswap_image_kernel(image, i, &kernel, NULL);
    hotswap_function function = function_of(image, kernel.function);
    const Elf64_Sym *symbol = descriptor_of(one, function.name);
    const unsigned char *bytes = symbol ? at(one, symbol->st_value) : NULL;
    int64_t entry = 0;
    uint32_t arguments = 0;
    if (bytes)
      memcpy(&arguments, bytes + 8, 4), memcpy(&entry, bytes + 16, 8);
    EXPECT(bytes && kernel.descriptor_address == symbol->st_value, function.name);
    EXPECT(function.address == kernel.descriptor_address + (uint64_t)entry, function.name);
    EXPECT(kernel.kernarg_size == arguments, function.name);
  }
}

/* The symbol at the start of a function. */
static const Elf64_Sym *function_at(const code_object *one, uint64_t address) {
  for (size_t i = 1; i < one->n_symbols; i++)
    if (ELF64_ST_TYPE(one->symbols[i].st_info) == STT_FUNC && one->symbols[i].st_value == address)
      return &one->symbols[i];
  return NULL;
}
static int calls(const hotswap_image *image, size_t from, size_t to) {
  uint32_t callees[64];
  size_t count = 64;
  hotswap_function_callees(image, from, callees, &count, NULL);
  for (size_t i = 0; i < count; i++)
    if (callees[i] == to)
      return 1;
  return 0;
}

/* Static relocations of the code name every function that it refers to and that is not of its file alone. */
static void callees(const code_object *one, const hotswap_image *image) {
  hotswap_image_info info = info_of(image);
  unsigned char *named = calloc(info.functions, info.functions);
  size_t edges = 0, taken = 0, invented = 0;
  for (size_t i = 0; i < one->n_sections; i++) {
    const Elf64_Shdr *s = &one->sections[i];
    if (s->sh_type != SHT_RELA || !s->sh_info || !(one->sections[s->sh_info].sh_flags & SHF_EXECINSTR))
      continue;
    const Elf64_Rela *rows = (const void *)(one->bytes + s->sh_offset);
    for (size_t n = 0; n < s->sh_size / sizeof *rows; n++) {
      const Elf64_Sym *symbol = &one->symbols[ELF64_R_SYM(rows[n].r_info)];
      size_t from = 0, to = 0;
      if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
          hotswap_image_function_at(image, rows[n].r_offset, &from, NULL, NULL) ||
          hotswap_image_function_at(image, symbol->st_value, &to, NULL, NULL))
        continue;
      if (named[from * info.functions + to]++)
        continue;
      edges += calls(image, from, to);
      /* A function that is only named is said to have its address taken: nothing is missed without a word. */
      int is_taken = (function_of(image, to).flags & HOTSWAP_FUNCTION_ADDRESS_TAKEN) != 0;
      EXPECT(calls(image, from, to) || is_taken, function_of(image, to).name);
      taken += !calls(image, from, to);
    }
  }
  for (size_t from = 0; from < info.functions; from++)
    for (size_t to = 0; to < info.functions; to++) {
      const Elf64_Sym *symbol = function_at(one, function_of(image, to).address);
      int has_relocation = symbol && ELF64_ST_VISIBILITY(symbol->st_other) != STV_DEFAULT;
      invented += calls(image, from, to) && has_relocation && !named[from * info.functions + to];
    }
  EXPECT(!invented, "a callee without a relocation");
  /* The kernels' sets are closed under calls; an incomplete one has a call with an unknown target. */
  for (size_t i = 0; i < info.kernels; i++) {
    hotswap_kernel kernel = {.struct_size = sizeof kernel};
    hotswap_image_kernel(image, i, &kernel, NULL);
    uint32_t reached[64];
    size_t count = 64, unknown = 0;
    hotswap_kernel_reachable(image, i, reached, &count, NULL);
    for (size_t n = 0; n < count; n++) {
      hotswap_function function = function_of(image, reached[n]);
      unknown += function.unknown_calls + function.imports;
      uint32_t below[64];
      size_t n_below = 64;
      hotswap_function_callees(image, reached[n], below, &n_below, NULL);
      for (size_t b = 0; b < n_below; b++) {
        size_t r = 0;
        while (r < count && reached[r] != below[b])
          r++;
        EXPECT(r < count, function.name);
      }
    }
    EXPECT(kernel.complete == (unknown == 0), function_of(image, kernel.function).name);
  }
  printf("callees: %zu edges, %zu taken addresses, 0 missed, 0 invented\n", edges, taken);
  free(named);
}

/* --- The loader: two objects that need each other. --- */

static uint64_t word(const hotswap_loaded *loaded, uint64_t address) {
  hotswap_loaded_info info = {.struct_size = sizeof info};
  hotswap_loaded_info_get(loaded, &info, NULL);
  for (size_t i = 0; i < info.segments; i++) {
    hotswap_segment segment = {.struct_size = sizeof segment};
    hotswap_loaded_segment(loaded, i, &segment, NULL);
    uint64_t value;
    if (address >= segment.address && address + 8 <= segment.address + segment.size) {
      memcpy(&value, segment.bytes + (address - segment.address), 8);
      return value;
    }
  }
  return 0;
}
static hotswap_loaded *load(const hotswap_image *image, uint64_t base, const hotswap_external *external, size_t deferred) {
  hotswap_loaded *loaded = NULL;
  hotswap_loaded_info info = {.struct_size = sizeof info};
  EXPECT(hotswap_image_load(image, base, external, external != NULL, &loaded, NULL) == HOTSWAP_OK, "load");
  EXPECT(hotswap_loaded_info_get(loaded, &info, NULL) == HOTSWAP_OK && info.undefined == deferred, "undefined");
  size_t imported = 0;
  for (size_t i = 0; i < info.relocations; i++) {
    hotswap_relocation one = {.struct_size = sizeof one};
    hotswap_loaded_relocation(loaded, i, &one, NULL);
    if (external && !strcmp(one.symbol, external->name))
      imported += one.applied && one.value == external->address && word(loaded, one.address) == external->address;
    EXPECT(one.applied || deferred, one.symbol);
  }
  EXPECT(!external || imported > 0, "an imported word");
  return loaded;
}
static void circle(const char *one_path, const char *other_path) {
  code_object one = read_object(one_path), other = read_object(other_path);
  hotswap_image *first = image_of(&one), *second = image_of(&other);
  const uint64_t here = 0x7f0000000000, there = 0x7e0000000000;
  hotswap_external ping = {"ping", here + address_of(first, "ping")};
  hotswap_external pong = {"pong", there + address_of(second, "pong")};
  hotswap_loaded *open = load(first, here, NULL, 1);
  const char *missing = "";
  hotswap_loaded_undefined(open, 0, &missing, NULL);
  EXPECT(!strcmp(missing, "pong"), missing);
  hotswap_loaded *all[] = {open, load(second, there, &ping, 0), load(first, here, &pong, 0)};
  printf("loader: a circle of two objects, 0 words wrong\n");
  for (int i = 0; i < 3; i++)
    hotswap_loaded_free(all[i]);
  hotswap_image_free(first), hotswap_image_free(second);
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  code_object one = read_object(argv[1]);
  hotswap_image *image = image_of(&one);
  classes(&one, image);
  entries(&one, image);
  callees(&one, image);
  hotswap_image_free(image);
  circle(argv[2], argv[3]);
  return failures ? 1 : 0;
}
